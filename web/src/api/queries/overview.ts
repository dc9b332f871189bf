/** The overview: what runs, what is late or broken, what comes. */

import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import type { Overview } from "@/api/types";
import { alignClock } from "@/state/ticker";

export function useOverview() {
  return useQuery({
    queryKey: keys.overview,
    queryFn: async ({ signal }): Promise<Overview> => {
      const overview = await dataOf(api.GET("/api/overview", { signal }));
      alignClock(overview.now);
      return overview;
    },
    // Late runs and lost nodes make no event of their own.
    refetchInterval: 15_000,
  });
}
