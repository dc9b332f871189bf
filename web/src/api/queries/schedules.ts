/** Schedules: lists, one of them with its runs, next times and history, and every verb. */

import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { useIntent } from "@/api/intent";
import { keys } from "@/api/keys";
import { ASK_AGAIN } from "@/api/queries/blocking";
import { pagesOf } from "@/api/queries/pages";
import type { paths } from "@/api/schema";
import type { Backfill, Bulk, History, NewSchedule, Schedule, ScheduleChanges } from "@/api/types";

export type { Backfill, Bulk } from "@/api/types";

export interface ScheduleFilter {
  project?: string;
  state?: string;
  q?: string;
  owner?: string;
  sort?: string;
  recent?: number;
  limit?: number;
}

type ListQuery = NonNullable<paths["/api/schedules"]["get"]["parameters"]["query"]>;

const at = (ref: string) => ({ path: { ref } });

/** Pages of schedules; `itemsOf(query.data)` are those that are loaded, `data.pages[0].total` counts all. */
export function useSchedules(filter: ScheduleFilter = {}) {
  // What stands in the address may be anything: the server says when it is wrong.
  const query = filter as ListQuery;
  return useInfiniteQuery(
    pagesOf<Schedule>([...keys.schedules, "list", filter], (cursor, signal) =>
      api.GET("/api/schedules", { params: { query: { ...query, cursor } }, signal }),
    ),
  );
}

export function fetchSchedule(ref: string, signal?: AbortSignal): Promise<Schedule> {
  return dataOf(api.GET("/api/schedules/{ref}", { params: at(ref), signal }));
}

export function useSchedule(ref: string | undefined, { watched = false } = {}) {
  return useQuery({
    // What holds it up changes without an event.
    refetchInterval: watched ? ASK_AGAIN : false,
    queryKey: keys.schedule(ref ?? ""),
    queryFn: ({ signal }) => fetchSchedule(ref ?? "", signal),
    enabled: ref !== undefined,
  });
}

export function useScheduleHistory(ref: string, days = 182) {
  return useQuery({
    queryKey: [...keys.schedule(ref), "history", days],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/schedules/{ref}/history", { params: { ...at(ref), query: { days } }, signal }),
      ) as Promise<History>,
  });
}

/** Which schedules it runs after, and which run after it. */
export function useRelations(ref: string) {
  return useQuery({
    queryKey: [...keys.schedule(ref), "relations"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/schedules/{ref}/relations", { params: at(ref), signal })),
    refetchInterval: 10_000, // of the others nobody tells this page
  });
}

export function useNextTimes(ref: string, n = 5) {
  return useQuery({
    queryKey: [...keys.schedule(ref), "next", n],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/schedules/{ref}/next", { params: { ...at(ref), query: { n } }, signal })),
  });
}

export function useWhy(ref: string, moment: string | null, enabled = true) {
  return useQuery({
    queryKey: [...keys.schedule(ref), "why", moment],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/schedules/{ref}/why", { params: { path: { ref }, query: { at: moment } }, signal })),
    enabled,
  });
}

/** What a timing means and when it is due; a wrong one is a ProblemError with `fields.text` (position, hint). */
export function useTimingPreview(text: string, zone?: string, name?: string, n = 5) {
  return useQuery({
    queryKey: [...keys.timings, text, zone ?? null, name ?? null, n],
    queryFn: ({ signal }) => dataOf(api.GET("/api/timings/preview", { params: { query: { text, zone, name, n } }, signal })),
    enabled: text.trim() !== "",
    retry: false,
    staleTime: 30_000,
    placeholderData: keepPreviousData,
  });
}

/** After a change: the schedule itself is written into the cache, the lists are loaded anew. */
function useSettled() {
  const cache = useQueryClient();
  return (schedule?: Schedule): void => {
    if (schedule !== undefined) cache.setQueryData(keys.schedule(schedule.name), schedule);
    void cache.invalidateQueries({ queryKey: keys.schedules });
    void cache.invalidateQueries({ queryKey: keys.overview });
    void cache.invalidateQueries({ queryKey: keys.timeline });
  };
}

export function useCreateSchedule() {
  const settled = useSettled();
  return useMutation({
    mutationFn: (schedule: NewSchedule) =>
      dataOf(api.POST("/api/schedules", { body: schedule, headers: { "If-None-Match": "*" } })),
    onSuccess: settled,
  });
}

/** The schedule that a change is made to: one that was removed and added again is another. */
export type Seen = Pick<Schedule, "id" | "version">;

export function useChangeSchedule(ref: string) {
  const settled = useSettled();
  return useMutation({
    mutationFn: ({ changes, seen }: { changes: ScheduleChanges; seen?: Seen }) =>
      dataOf(
        api.PATCH("/api/schedules/{ref}", {
          params: at(ref),
          body: changes,
          headers: seen === undefined ? {} : { "If-Match": `"${seen.id}.${seen.version}"` },
        }),
      ),
    onSuccess: settled,
  });
}

export function useRemoveSchedule() {
  const cache = useQueryClient();
  const settled = useSettled();
  return useMutation({
    mutationFn: ({ ref, force = false }: { ref: string; force?: boolean }) =>
      dataOf(api.DELETE("/api/schedules/{ref}", { params: { ...at(ref), query: { force } } })),
    onSuccess: (_answer, { ref }) => {
      cache.removeQueries({ queryKey: keys.schedule(ref) });
      settled();
    },
  });
}

/** On and off are shown at once, and taken back when the server says no. */
function useToggle<V extends { ref: string }>(send: (variables: V) => Promise<Schedule>, enabled: boolean) {
  const cache = useQueryClient();
  const settled = useSettled();
  return useMutation({
    mutationFn: send,
    onMutate: ({ ref }: V) => {
      const before = cache.getQueryData<Schedule>(keys.schedule(ref));
      if (before !== undefined) {
        const state = !enabled ? "off" : before.broken !== null ? "broken" : "on";
        cache.setQueryData<Schedule>(keys.schedule(ref), { ...before, enabled, state, blocked_by: null });
      }
      return { before };
    },
    onError: (_error, { ref }, held) => {
      if (held?.before !== undefined) cache.setQueryData(keys.schedule(ref), held.before);
    },
    onSuccess: settled,
  });
}

export function useEnable() {
  return useToggle(
    ({ ref }: { ref: string }) => dataOf(api.POST("/api/schedules/{ref}/enable", { params: at(ref) })),
    true,
  );
}

export function useDisable() {
  return useToggle(
    ({ ref, note, keepRetries }: { ref: string; note?: string; keepRetries: boolean }) =>
      dataOf(api.POST("/api/schedules/{ref}/disable", { params: at(ref), body: { note, keep_retries: keepRetries } })),
    false,
  );
}

/** Give a schedule that code declares back what the code says, of these fields or of all. */
export function useRevert() {
  const settled = useSettled();
  return useMutation({
    mutationFn: ({ ref, fields }: { ref: string; fields: string[] | null }) =>
      dataOf(api.POST("/api/schedules/{ref}/revert", { params: at(ref), body: { fields } })),
    onSuccess: settled,
  });
}

export function useTrigger() {
  const cache = useQueryClient();
  const settled = useSettled();
  const mutationFn = useIntent(({ ref, force }: { ref: string; force?: boolean }, headers) =>
    dataOf(api.POST("/api/schedules/{ref}/trigger", { params: at(ref), body: { force }, headers })),
  );
  return useMutation({
    mutationFn,
    onSuccess: () => {
      settled();
      void cache.invalidateQueries({ queryKey: keys.runs });
    },
  });
}

/** The key of its ping address, in the place of the one that it has if it is to be a new one. */
export function usePingKey(ref: string) {
  return useMutation({
    mutationFn: (isNew: boolean) =>
      dataOf(api.POST("/api/schedules/{ref}/ping-key", { params: at(ref), body: { new: isNew } })),
  });
}

export function useBackfill(ref: string) {
  const cache = useQueryClient();
  const mutationFn = useIntent((wanted: Backfill, headers) =>
    dataOf(api.POST("/api/schedules/{ref}/backfill", { params: at(ref), body: wanted, headers })),
  );
  return useMutation({
    mutationFn,
    onSuccess: (_answer, wanted: Backfill) => {
      if (wanted.dry_run !== true) void cache.invalidateQueries({ queryKey: keys.runs });
    },
  });
}

export function useBulk() {
  const settled = useSettled();
  const mutationFn = useIntent((wanted: Bulk, headers) =>
    dataOf(api.POST("/api/schedules/bulk", { body: wanted, headers })),
  );
  return useMutation({ mutationFn, onSuccess: () => settled() });
}
