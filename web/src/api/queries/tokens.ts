/** Tokens: what scripts log in with. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import type { Role } from "@/api/types";

export function useTokens() {
  return useQuery({
    queryKey: keys.tokens,
    queryFn: ({ signal }) => dataOf(api.GET("/api/tokens", { signal })),
  });
}

export function useMakeToken() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (wanted: { name: string; role: Role; expires?: string }) =>
      dataOf(api.POST("/api/tokens", { body: wanted })),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.tokens }),
  });
}

export function useRemoveToken() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: { id: number }) => dataOf(api.DELETE("/api/tokens/{id}", { params: { path: { id } } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.tokens }),
  });
}
