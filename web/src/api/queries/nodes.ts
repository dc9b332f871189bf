/** Nodes: who is alive, drain and resume. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import type { Node } from "@/api/types";

export function useNodes() {
  return useQuery({
    queryKey: keys.nodes,
    queryFn: ({ signal }) => dataOf(api.GET("/api/nodes", { signal })) as Promise<{ items: Node[] }>,
    // Heartbeats make no events.
    refetchInterval: 5_000,
  });
}

function useVerb(path: "/api/nodes/{id}/drain" | "/api/nodes/{id}/resume") {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: { id: string }) => dataOf(api.POST(path, { params: { path: { id } } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.nodes }),
  });
}

export const useDrainNode = () => useVerb("/api/nodes/{id}/drain");
export const useResumeNode = () => useVerb("/api/nodes/{id}/resume");
