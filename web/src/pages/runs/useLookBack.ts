/** A search looks through so many runs at a time, and a page without any is not its end: it goes on by itself for a while,
 *  and then only when it is told to. */

import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { useEffect, useState } from "react";

/** So many pages without any run are asked for in a row. */
export const PAGES_IN_A_ROW = 10;

type Searched = Pick<
  UseInfiniteQueryResult<{ pages: unknown[] }>,
  "data" | "hasNextPage" | "isFetching" | "isFetchNextPageError" | "fetchNextPage"
>;

/** How far the search is: under way, failed, over, or what lets it go on. `wanted` is what is searched for. */
export function useLookBack(query: Searched, isEmpty: boolean, wanted: string): "looking" | "failed" | "over" | (() => void) {
  const [allowed, setAllowed] = useState({ wanted, pages: PAGES_IN_A_ROW });
  const pages = query.data?.pages.length ?? 0;
  const most = allowed.wanted === wanted ? allowed.pages : PAGES_IN_A_ROW;
  const isOpen = isEmpty && query.hasNextPage;
  const hasFailed = query.isFetchNextPageError;
  const { fetchNextPage, isFetching } = query;
  const asks = isOpen && !hasFailed && pages < most && !isFetching;
  useEffect(() => {
    if (asks) void fetchNextPage();
    // An answer may come before anything is drawn between two pages.
  }, [asks, pages, fetchNextPage]);
  if (!isOpen) return "over";
  if (hasFailed) return "failed";
  if (pages < most || isFetching) return "looking";
  return () => setAllowed({ wanted, pages: pages + PAGES_IN_A_ROW });
}
