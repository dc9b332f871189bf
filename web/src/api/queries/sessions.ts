/** Sessions: mailboxes, their messages and events, send, stop, stop all. */

import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { useIntent } from "@/api/intent";
import { keys } from "@/api/keys";
import { type RunPages, freshPage } from "@/api/queries/freshPages";
import { pagesOf } from "@/api/queries/pages";
import type { NewMessage, Run, SessionEvent } from "@/api/types";

const at = (key: string) => ({ path: { key } });

export function useSessions(filter: { q?: string; busy?: boolean; limit?: number }) {
  return useQuery({
    queryKey: [...keys.sessions, "list", filter],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/sessions", { params: { query: { ...filter, busy: filter.busy || undefined } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });
}

export function useSession(key: string) {
  return useQuery({
    queryKey: keys.session(key),
    queryFn: ({ signal }) => dataOf(api.GET("/api/sessions/{key}", { params: at(key), signal })),
  });
}

/** Its runs, newest first; what is loaded of earlier ones is kept when there is news. */
export function useMessages(key: string) {
  const cache = useQueryClient();
  const queryKey = [...keys.session(key), "messages"];
  return useInfiniteQuery(
    pagesOf<Run>(queryKey, async (cursor, signal) => {
      const load = () =>
        dataOf(api.GET("/api/sessions/{key}/messages", { params: { ...at(key), query: { cursor } }, signal }));
      return { data: await freshPage(() => cache.getQueryData<RunPages>(queryKey), cursor, load) };
    }),
  );
}

/** What a queued run of a session waits for, asked for again whenever something happens in the session. */
export function useWaiting({ id, session }: Pick<Run, "id" | "session">) {
  return useQuery({
    queryKey: [...keys.session(session ?? ""), "waiting", id],
    queryFn: ({ signal }) => dataOf(api.GET("/api/runs/{id}", { params: { path: { id } }, signal })),
  });
}

const PART = 1000;
const MOST = 5000;

/** What happened, oldest first: only what is new since the last look is loaded. */
export function useSessionEvents(key: string) {
  const cache = useQueryClient();
  const queryKey = [...keys.session(key), "events"];
  return useQuery({
    queryKey,
    queryFn: async ({ signal }) => {
      let items = cache.getQueryData<SessionEvent[]>(queryKey) ?? [];
      for (;;) {
        const query = { after: items.at(-1)?.id ?? 0, limit: PART };
        const more = await dataOf(api.GET("/api/sessions/{key}/events", { params: { ...at(key), query }, signal }));
        items = [...items, ...more.items].slice(-MOST);
        if (more.items.length < PART) return items;
      }
    },
  });
}

function useSettled() {
  const cache = useQueryClient();
  return () => cache.invalidateQueries({ queryKey: keys.sessions });
}

export function useSendMessage() {
  const settled = useSettled();
  const mutationFn = useIntent(({ key, message }: { key: string; message: NewMessage }, headers) =>
    dataOf(api.POST("/api/sessions/{key}/messages", { params: at(key), body: message, headers })),
  );
  return useMutation({ mutationFn, onSuccess: settled });
}

/** Cancels the oldest active run, or with `all` everything, and drops what is queued. */
export function useStopSession() {
  const settled = useSettled();
  return useMutation({
    mutationFn: ({ key, all }: { key: string; all: boolean }) =>
      dataOf(api.POST(all ? "/api/sessions/{key}/stop_all" : "/api/sessions/{key}/stop", { params: at(key) })),
    onSuccess: settled,
  });
}
