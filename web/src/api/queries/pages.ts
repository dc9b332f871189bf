/** Lists that come in pages, as one infinite query. */

import { infiniteQueryOptions, keepPreviousData, type QueryKey } from "@tanstack/react-query";
import { dataOf } from "@/api/client";
import type { Page } from "@/api/types";

type Load<T> = (cursor: string | null, signal: AbortSignal) => Promise<{ data?: Page<T> }>;

export function pagesOf<T>(queryKey: QueryKey, load: Load<T>) {
  return infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam, signal }) => dataOf(load(pageParam, signal)),
    initialPageParam: null as string | null,
    getNextPageParam: (last: Page<T>) => last.next,
    placeholderData: keepPreviousData,
  });
}

/** All items of the pages that are loaded. */
export function itemsOf<T>(data: { pages: Page<T>[] } | undefined): T[] {
  return data === undefined ? [] : data.pages.flatMap((page) => page.items);
}
