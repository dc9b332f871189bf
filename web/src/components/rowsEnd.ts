/** How a list goes on after the rows that are here. */

import type { UseInfiniteQueryResult } from "@tanstack/react-query";

export interface RowsEnd {
  /** Called when the last rows come into sight and there is more. */
  onEnd?: () => void;
  hasMore?: boolean;
  /** Something is being loaded: it is not asked for more now. */
  isBusy?: boolean;
  /** Why more could not be loaded; it is not asked for again but by a button. */
  endError?: unknown;
}

type Endless = Pick<
  UseInfiniteQueryResult,
  "hasNextPage" | "isFetching" | "isFetchNextPageError" | "error" | "fetchNextPage"
>;

/** The end of an infinite query. */
export function endOf(query: Endless): RowsEnd {
  return {
    hasMore: query.hasNextPage,
    isBusy: query.isFetching,
    endError: query.isFetchNextPageError ? query.error : null,
    onEnd: () => void query.fetchNextPage(),
  };
}
