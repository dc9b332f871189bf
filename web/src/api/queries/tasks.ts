/** Tasks: the functions that some node has registered. */

import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";

export function useTasks() {
  return useQuery({
    queryKey: keys.tasks,
    queryFn: ({ signal }) => dataOf(api.GET("/api/tasks", { signal })),
    staleTime: 30_000,
  });
}
