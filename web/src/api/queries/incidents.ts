/** Incidents: what is wrong, whom that was told, ack and rerun. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import { pagesOf } from "@/api/queries/pages";
import type { Incident } from "@/api/types";

/** The live stream tells of changes at once; this finds what it could not tell. */
const LOOK_EVERY = 60_000;

/** How many are open. */
export function useOpenIncidents() {
  return useQuery({
    queryKey: [...keys.incidents, "open"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/incidents", { params: { query: { state: "open", limit: 1 } }, signal })),
    refetchInterval: LOOK_EVERY,
  });
}

export function useIncidents(state: "open" | "closed" | undefined) {
  return useInfiniteQuery({
    ...pagesOf<Incident>([...keys.incidents, "list", state ?? "all"], (cursor, signal) =>
      api.GET("/api/incidents", { params: { query: { state, cursor } }, signal }),
    ),
    refetchInterval: LOOK_EVERY,
  });
}

export function useIncident(id: number) {
  return useQuery({
    queryKey: keys.incident(id),
    queryFn: ({ signal }) => dataOf(api.GET("/api/incidents/{id}", { params: { path: { id } }, signal })),
    refetchInterval: LOOK_EVERY,
  });
}

export function useAckIncident() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id, note }: { id: number; note: string }) =>
      dataOf(api.POST("/api/incidents/{id}/ack", { params: { path: { id } }, body: note === "" ? {} : { note } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.incidents }),
  });
}

export function useRerunIncident() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: { id: number }) => dataOf(api.POST("/api/incidents/{id}/rerun", { params: { path: { id } } })),
    onSettled: () => {
      void cache.invalidateQueries({ queryKey: keys.runs });
      void cache.invalidateQueries({ queryKey: keys.incidents });
    },
  });
}
