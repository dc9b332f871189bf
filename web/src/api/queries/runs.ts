/** Runs: the ledger, one of them, its output, and its verbs. */

import { type Query, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { useIntent } from "@/api/intent";
import { keys } from "@/api/keys";
import { ASK_AGAIN } from "@/api/queries/blocking";
import { type RunPages, freshPage } from "@/api/queries/freshPages";
import { pagesOf } from "@/api/queries/pages";
import type { Cause, Lines, Run, RunState, Trigger } from "@/api/types";
import { instantOf } from "@/state/since";

export interface RunFilter {
  /** Part of the name of a schedule, a task or a session. */
  q?: string;
  schedule?: string;
  task?: string;
  session?: string;
  project?: string;
  lane?: string;
  trigger?: Trigger;
  state?: RunState[];
  cause?: Cause[];
  /** How far back, in a word of state/since. */
  since?: string;
  limit?: number;
}

const at = (id: number) => ({ path: { id } });

/** Pages of runs, newest first; `itemsOf(query.data)` are those that are loaded. */
export function useRuns(filter: RunFilter = {}) {
  const { since, ...rest } = filter;
  const cache = useQueryClient();
  const queryKey = [...keys.runs, "list", filter];
  return useInfiniteQuery(
    pagesOf<Run>(queryKey, async (cursor, signal) => {
      const query = { ...rest, from: instantOf(since), cursor };
      const load = () => dataOf(api.GET("/api/runs", { params: { query }, signal }));
      return { data: await freshPage(() => cache.getQueryData<RunPages>(queryKey), cursor, load) };
    }),
  );
}

export function useRun(id: number, enabled = true) {
  return useQuery({
    enabled,
    queryKey: keys.run(id),
    queryFn: ({ signal }) => dataOf(api.GET("/api/runs/{id}", { params: at(id), signal })) as Promise<Run>,
    // What a queued run waits for changes without an event.
    refetchInterval: (query: Query<Run>) => (query.state.data?.state === "queued" ? ASK_AGAIN : false),
  });
}

/** Which runs it came after or waits for, and which come after it. */
export function useRunRelations(id: number, goesOn: boolean) {
  return useQuery({
    queryKey: [...keys.run(id), "relations"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/runs/{id}/relations", { params: at(id), signal })),
    refetchInterval: goesOn ? 10_000 : false, // of the others nobody tells this page
  });
}

const LINES_AT_ONCE = 5000;

/** The next lines of the output after this number, whether there are more of them, and whether the run has ended. */
export function fetchLines(id: number, after = 0, signal?: AbortSignal): Promise<Lines> {
  const query = { after, limit: LINES_AT_ONCE };
  return dataOf(api.GET("/api/runs/{id}/lines", { params: { ...at(id), query }, signal }));
}

/** The whole output as a file. A plain link would come without the key of this origin, and be refused. */
export async function downloadOutput(id: number): Promise<void> {
  const text = await dataOf(api.GET("/api/runs/{id}/output", { params: at(id), parseAs: "blob" }));
  const address = URL.createObjectURL(text);
  const link = document.createElement("a");
  link.href = address;
  link.download = `run-${id}.txt`;
  link.click();
  // Not at once: some browsers read it only after this.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function useSettled() {
  const cache = useQueryClient();
  return (run: Run): void => {
    cache.setQueryData(keys.run(run.id), run);
    void cache.invalidateQueries({ queryKey: [...keys.runs, "list"] });
    for (const queryKey of [keys.overview, keys.schedules, keys.sessions, keys.timeline]) {
      void cache.invalidateQueries({ queryKey });
    }
  };
}

export function useCancelRun() {
  const settled = useSettled();
  return useMutation({
    mutationFn: ({ id, reason }: { id: number; reason?: string }) =>
      dataOf(api.POST("/api/runs/{id}/cancel", { params: at(id), body: { reason } })),
    onSuccess: settled,
  });
}

/** Answers the new run. */
export function useRetryRun() {
  const settled = useSettled();
  const mutationFn = useIntent(({ id }: { id: number }, headers) =>
    dataOf(api.POST("/api/runs/{id}/retry", { params: at(id), headers })),
  );
  return useMutation({ mutationFn, onSuccess: settled });
}
