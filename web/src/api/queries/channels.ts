/** Channels and rules: who is told, and of what. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import type { NewChannel, NewRule } from "@/api/types";

export function useChannels() {
  return useQuery({
    queryKey: keys.channels,
    queryFn: ({ signal }) => dataOf(api.GET("/api/channels", { signal })),
  });
}

export function useAddChannel() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (wanted: NewChannel) => dataOf(api.POST("/api/channels", { body: wanted })),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.channels }),
  });
}

export function useTestChannel() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ name }: { name: string }) =>
      dataOf(api.POST("/api/channels/{name}/test", { params: { path: { name } } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.channels }),
  });
}

export function useRemoveChannel() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ name, force }: { name: string; force: boolean }) =>
      dataOf(api.DELETE("/api/channels/{name}", { params: { path: { name }, query: { force } } })),
    onSettled: () => {
      void cache.invalidateQueries({ queryKey: keys.channels });
      void cache.invalidateQueries({ queryKey: keys.rules });
    },
  });
}

export function useRules() {
  return useQuery({
    queryKey: keys.rules,
    queryFn: ({ signal }) => dataOf(api.GET("/api/rules", { signal })),
  });
}

export function useAddRule() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (wanted: NewRule) => dataOf(api.POST("/api/rules", { body: wanted })),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.rules }),
  });
}

export function useRemoveRule() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: { id: number }) => dataOf(api.DELETE("/api/rules/{id}", { params: { path: { id } } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.rules }),
  });
}
