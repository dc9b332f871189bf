/** Logins: every browser that is in. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";

export function useLogins() {
  return useQuery({
    queryKey: keys.logins,
    queryFn: ({ signal }) => dataOf(api.GET("/api/logins", { signal })),
  });
}

export function useEndLogin() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: { id: number }) => dataOf(api.DELETE("/api/logins/{id}", { params: { path: { id } } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.logins }),
  });
}
