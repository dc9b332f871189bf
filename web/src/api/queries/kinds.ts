/** The kinds of work that the server knows, those of installed packages too. They stay as they are until it restarts. */

import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";

export function useKinds() {
  return useQuery({
    queryKey: keys.kinds,
    queryFn: ({ signal }) => dataOf(api.GET("/api/kinds", { signal })),
    staleTime: Infinity,
    retry: false,
  });
}
