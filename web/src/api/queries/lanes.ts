/** Lanes: how full they are, and pause, resume, resize, clear. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import type { Lane } from "@/api/types";

interface Lanes {
  items: Lane[];
}

export function useLanes() {
  return useQuery({
    queryKey: keys.lanes,
    queryFn: ({ signal }) => dataOf(api.GET("/api/lanes", { signal })),
    refetchInterval: 10_000,
  });
}

function useChange<V extends { name: string }>(
  send: (variables: V) => Promise<Lane>,
  guess: (given: V) => Partial<Lane>,
) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: send,
    onMutate: (given: V) => {
      const before = cache.getQueryData<Lanes>(keys.lanes);
      const items = before?.items.map((lane) => (lane.name === given.name ? { ...lane, ...guess(given) } : lane));
      if (items !== undefined) cache.setQueryData<Lanes>(keys.lanes, { items });
      return { before };
    },
    onError: (_error, _given, held) => {
      if (held?.before !== undefined) cache.setQueryData(keys.lanes, held.before);
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.lanes }),
  });
}

const at = (name: string) => ({ path: { name } });

export function usePauseLane() {
  return useChange(
    ({ name, note }: { name: string; note?: string }) =>
      dataOf(api.POST("/api/lanes/{name}/pause", { params: at(name), body: note ? { note } : {} })),
    ({ note }) => ({ paused: true, note: note ?? null }),
  );
}

export function useResumeLane() {
  return useChange(
    ({ name }: { name: string }) => dataOf(api.POST("/api/lanes/{name}/resume", { params: at(name) })),
    () => ({ paused: false, note: null }),
  );
}

export function useResizeLane() {
  return useChange(
    ({ name, limit, rate }: { name: string; limit?: number; rate?: string }) =>
      dataOf(api.PUT("/api/lanes/{name}", { params: at(name), body: { limit, rate } })),
    ({ limit }) => (limit === undefined ? {} : { limit }),
  );
}

/** Makes a lane, or answers null where there is one of that name: the same request would resize it. */
export function useMakeLane() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async ({ name, limit }: { name: string; limit: number }) => {
      const lanes = await dataOf(api.GET("/api/lanes", {}));
      cache.setQueryData<Lanes>(keys.lanes, lanes);
      if (lanes.items.some((lane) => lane.name === name)) return null;
      return dataOf(api.PUT("/api/lanes/{name}", { params: at(name), body: { limit } }));
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.lanes }),
  });
}

export function useClearLane() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ name }: { name: string }) => dataOf(api.POST("/api/lanes/{name}/clear", { params: at(name) })),
    onSettled: () => {
      void cache.invalidateQueries({ queryKey: keys.lanes });
      void cache.invalidateQueries({ queryKey: keys.runs });
      void cache.invalidateQueries({ queryKey: keys.overview });
    },
  });
}
