/** Tasks: the functions that some node has registered. */

import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";

/** Those that a node, or the app of the page, can run now: others are only named by a schedule. */
export function useKnownTasks(): string[] | undefined {
  return useTasks()
    .data?.items.filter((task) => task.app || task.nodes.length > 0)
    .map((task) => task.name);
}

export function useTasks() {
  return useQuery({
    queryKey: keys.tasks,
    queryFn: ({ signal }) => dataOf(api.GET("/api/tasks", { signal })),
    staleTime: 30_000,
  });
}
