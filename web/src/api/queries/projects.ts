/** Projects: names and folders that group schedules. */

import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";

export function useProjects() {
  return useQuery({
    queryKey: keys.projects,
    queryFn: ({ signal }) => dataOf(api.GET("/api/projects", { signal })),
    staleTime: 30_000,
  });
}
