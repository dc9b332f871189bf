/** Runs: the ledger, one of them, its output, and its verbs. */

import { useInfiniteQuery, useMutation, useMutationState, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import { pagesOf } from "@/api/queries/pages";
import { hasEnded } from "@/components/stateLook";
import type { Lines, Run, RunState, Trigger } from "@/api/types";

export interface RunFilter {
  schedule?: string;
  task?: string;
  session?: string;
  project?: string;
  lane?: string;
  trigger?: Trigger;
  state?: RunState[];
  from?: string;
  until?: string;
  limit?: number;
}

const at = (id: number) => ({ path: { id } });

/** Pages of runs, newest first; `itemsOf(query.data)` are those that are loaded. */
export function useRuns(filter: RunFilter = {}) {
  return useInfiniteQuery(
    pagesOf<Run>([...keys.runs, "list", filter], (cursor, signal) =>
      api.GET("/api/runs", { params: { query: { ...filter, cursor } }, signal }),
    ),
  );
}

export function useRun(id: number) {
  return useQuery({
    queryKey: keys.run(id),
    queryFn: ({ signal }) => dataOf(api.GET("/api/runs/{id}", { params: at(id), signal })),
  });
}

/** The lines of the output after this number, and whether there will be more. */
export function fetchLines(id: number, after = 0, signal?: AbortSignal): Promise<Lines> {
  return dataOf(api.GET("/api/runs/{id}/lines", { params: { ...at(id), query: { after } }, signal }));
}

export const outputPath = (id: number): string => `/api/runs/${id}/output`;

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

const CANCEL = ["runs", "cancel"] as const;

interface Cancel {
  id: number;
  reason?: string;
}

export function useCancelRun() {
  const settled = useSettled();
  return useMutation({
    mutationKey: CANCEL,
    // Remembered for as long as a run may take to stop.
    gcTime: 3_600_000,
    mutationFn: ({ id, reason }: Cancel) =>
      dataOf(api.POST("/api/runs/{id}/cancel", { params: at(id), body: { reason } })),
    onSuccess: settled,
  });
}

/** Whether it was asked from this page to stop, and has not ended yet. */
export function useIsCancelling(run: Pick<Run, "id" | "state">): boolean {
  const asked = useMutationState({
    filters: { mutationKey: CANCEL },
    select: ({ state }) => state.status !== "error" && (state.variables as Cancel | undefined)?.id === run.id,
  });
  return asked.includes(true) && !hasEnded(run.state);
}

/** Answers the new run. */
export function useRetryRun() {
  const settled = useSettled();
  return useMutation({
    mutationFn: ({ id }: { id: number }) => dataOf(api.POST("/api/runs/{id}/retry", { params: at(id) })),
    onSuccess: settled,
  });
}
