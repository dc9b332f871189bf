/** The timeline: runs and due times of a span. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";

export interface TimelineSpan {
  from: string;
  to: string;
  schedule?: string;
  project?: string;
  limit?: number;
}

export function useTimeline(span: TimelineSpan) {
  return useQuery({
    queryKey: [...keys.timeline, span],
    queryFn: ({ signal }) => dataOf(api.GET("/api/timeline", { params: { query: span }, signal })),
    placeholderData: keepPreviousData,
  });
}
