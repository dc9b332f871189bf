/** The rows of the list: pages of 200 that are loaded as they come into sight; only those in sight are kept fresh. */

import { useQueries, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import { useLive } from "@/api/live";
import type { ScheduleFilter } from "@/api/queries/schedules";
import type { paths } from "@/api/schema";
import type { Page, Schedule } from "@/api/types";
import { type Cursors, cursorsAfter, uniqueRows } from "./pages";

const ROWS = [...keys.schedules, "rows"] as const;
const QUICK_MS = 1000;
const CALM_MS = 4000;
const MANY = 100;

type ListQuery = NonNullable<paths["/api/schedules"]["get"]["parameters"]["query"]>;

export interface ScheduleRows {
  rows: Schedule[];
  total: number | null;
  pending: boolean;
  error: unknown;
  hasMore: boolean;
  loadingMore: boolean;
  more: () => void;
  /** Which pages have a row in sight. */
  onSight: (pages: ReadonlySet<number>) => void;
  refetch: () => void;
}

const FIRST: Cursors = [null];

/** Another filter begins at its first page; what was shown stays until that is there. */
export function useScheduleRows(filter: ScheduleFilter): ScheduleRows {
  const cache = useQueryClient();
  const [cursors, setCursors] = useCursors(JSON.stringify(filter));
  const [seen, setSeen] = useState<ReadonlySet<number>>(new Set([0]));
  const last = cursors.length - 1;

  const queries = useQueries({
    queries: cursors.map((cursor, page) => ({
      queryKey: [...ROWS, filter, cursor],
      queryFn: ({ signal }: { signal: AbortSignal }): Promise<Page<Schedule>> =>
        // What stands in the address may be anything: the server says when it is wrong.
        dataOf(api.GET("/api/schedules", { params: { query: { ...filter, cursor } as ListQuery }, signal })),
      enabled: seen.has(page) || page === last,
      gcTime: 10 * 60_000,
    })),
  });
  const pages = queries.map((query) => query.data);
  const nexts = pages.map((page) => page?.next);

  // A page that was loaded anew may end elsewhere: what follows out of sight is then loaded from there.
  const lastSeen = Math.max(0, ...seen);
  const nextOfSeen = nexts[lastSeen];
  useEffect(() => {
    if (nextOfSeen !== undefined) setCursors((before) => cursorsAfter(before, lastSeen, nextOfSeen));
  }, [lastSeen, nextOfSeen, setCursors]);

  const total = pages[0]?.total ?? null;
  useGentleRefresh(total !== null && total > MANY ? CALM_MS : QUICK_MS);

  const next = nexts[last];
  const more = useCallback(() => {
    if (typeof next === "string") setCursors((before) => (before.includes(next) ? before : [...before, next]));
  }, [next, setCursors]);
  const pending = queries[0]?.isPending ?? true;
  const rows = useRows(pages, pending);

  return {
    rows,
    total,
    pending,
    error: queries.find((query) => query.error !== null)?.error ?? null,
    hasMore: typeof next === "string",
    loadingMore: cursors.length > 1 && (queries[last]?.isPending ?? false),
    more,
    onSight: setSeen,
    refetch: () => void cache.invalidateQueries({ queryKey: ROWS }),
  };
}

/** The rows of these pages, the same array as long as the pages are the same; the old ones while new ones are pending. */
function useRows(pages: (Page<Schedule> | undefined)[], pending: boolean): Schedule[] {
  const [held] = useState<{ pages: typeof pages; rows: Schedule[] }>(() => ({ pages: [], rows: [] }));
  const changed = pages.length !== held.pages.length || pages.some((page, place) => page !== held.pages[place]);
  if (changed && !pending) {
    held.pages = pages;
    held.rows = uniqueRows(pages);
  }
  return held.rows;
}

/** The cursors of the pages that are loaded, for one filter. */
function useCursors(filter: string): [Cursors, (update: (before: Cursors) => Cursors) => void] {
  const [held, setHeld] = useState({ filter, cursors: FIRST });
  const of = (state: typeof held) => (state.filter === filter ? state.cursors : FIRST);
  const set = useCallback(
    (update: (before: Cursors) => Cursors) =>
      setHeld((before) => {
        const cursors = before.filter === filter ? before.cursors : FIRST;
        const after = update(cursors);
        return after === before.cursors ? before : { filter, cursors: after };
      }),
    [filter],
  );
  return [of(held), set];
}

/** Loads what is in sight anew after live events: soon when the list is short, calmly when it is long. */
function useGentleRefresh(pause: number): void {
  const cache = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useLive("overview", (message) => {
    const matters =
      message.type === "skipped" ||
      (message.type === "event" && message.event.kind !== "run_progress" && message.event.kind !== "session_event");
    if (!matters || timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      void cache.invalidateQueries({ queryKey: ROWS }, { cancelRefetch: false });
    }, pause);
  });
}
