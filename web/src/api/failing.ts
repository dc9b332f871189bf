/** What is shown but could not be loaded anew: a server that speaks, but without its database, leaves old numbers. */

import { notifyManager, type Query, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useSyncExternalStore } from "react";
import { ProblemError } from "@/api/client";
import { toServerTime } from "@/state/ticker";

const ASK_AGAIN_MS = 5_000;

/** Whether the server itself failed; that something is gone or forbidden is an answer. */
const isServerFault = (error: unknown): boolean =>
  error instanceof ProblemError && (error.status === 0 || error.status >= 500);

/** Whether a query has data in sight that is older than it should be. A next page that fails says so in its list. */
function isFailing(query: Query): boolean {
  const { data, error, status, fetchMeta } = query.state;
  const isNextPage = fetchMeta?.fetchMore !== undefined;
  return status === "error" && data !== undefined && !isNextPage && query.isActive() && isServerFault(error);
}

/** Since when something that is in sight is old, by the clock of the server; null when all is fresh. It is asked for
 *  again until it comes. */
export function useOldSince(): number | null {
  const cache = useQueryClient();
  const subscribe = useCallback(
    (listener: () => void) => cache.getQueryCache().subscribe(notifyManager.batchCalls(listener)),
    [cache],
  );
  const oldest = useSyncExternalStore(subscribe, () => {
    const failing = cache.getQueryCache().getAll().filter(isFailing);
    return failing.length === 0 ? null : Math.min(...failing.map((query) => query.state.dataUpdatedAt));
  });
  const isOld = oldest !== null;
  useEffect(() => {
    if (!isOld) return undefined;
    const again = (): void => void cache.refetchQueries({ predicate: isFailing }, { cancelRefetch: false });
    const timer = setInterval(again, ASK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [cache, isOld]);
  return oldest === null ? null : toServerTime(oldest);
}
