/** The rows of the list: pages of 200 that are loaded as they come into sight; only those in sight are kept fresh. */

import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import { useLive } from "@/api/live";
import type { ScheduleFilter } from "@/api/queries/schedules";
import type { paths } from "@/api/schema";
import type { LiveKind, Page, Schedule } from "@/api/types";
import { type Cursors, type LoadedPage, type PagedRow, cursorsAfter, pagedRows } from "./pages";

const ROWS = [...keys.schedules, "rows"] as const;
const QUICK_MS = 1000;
const CALM_MS = 4000;
const MANY = 100;
/** In a longer list nobody goes to a place far below: it would be loaded up to there. */
const MOST_MISSING = 20_000;
/** How long the list is kept for whoever comes back to it. */
const KEPT_MS = 10 * 60_000;

type ListQuery = NonNullable<paths["/api/schedules"]["get"]["parameters"]["query"]>;

export interface ScheduleRows {
  rows: PagedRow[];
  total: number | null;
  /** How many follow that are not loaded, as far as one can go there. */
  missing: number;
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
const NOTHING: ReadonlySet<number> = new Set();

/** Another filter begins at its first page; what was shown stays until that is there. */
export function useScheduleRows(filter: ScheduleFilter): ScheduleRows {
  const cache = useQueryClient();
  const name = JSON.stringify(filter);
  const [cursors, setCursors] = useCursors(name);
  const [seen, setSeen] = useState(NOTHING);
  const [held] = useState<Held>(() => ({ name: "", pages: [], rows: [] }));
  const last = cursors.length - 1;

  const queries = useQueries({
    queries: cursors.map((cursor, place) => ({
      queryKey: [...ROWS, filter, cursor],
      queryFn: ({ signal }: { signal: AbortSignal }): Promise<Page<Schedule>> =>
        // What stands in the address may be anything: the server says when it is wrong.
        dataOf(api.GET("/api/schedules", { params: { query: { ...filter, cursor } as ListQuery }, signal })),
      enabled: seen.has(place) || place === last,
      // A page in sight that begins elsewhere now shows what it showed until that is there.
      placeholderData: held.name === name ? held.pages[place]?.page : undefined,
      // Longer than the cursors: a page that nobody loads would be a hole.
      gcTime: KEPT_MS + 60_000,
    })),
  });
  const pages = queries.map((query): LoadedPage => ({ page: query.data, at: query.dataUpdatedAt }));
  const nexts = queries.map((query) => (query.isPlaceholderData ? undefined : query.data?.next));

  // A page that was loaded anew may end elsewhere: what follows is then loaded from there.
  const ends = JSON.stringify(nexts);
  const latest = useRef(nexts);
  latest.current = nexts;
  useEffect(() => {
    const lastSeen = Math.max(...seen);
    for (const place of [...seen].sort((left, right) => left - right)) {
      const next = latest.current[place];
      if (next !== undefined) setCursors((before) => cursorsAfter(before, place, next, lastSeen));
    }
  }, [seen, ends, setCursors]);

  const total = pages[0]?.page?.total ?? null;
  useGentleRefresh(total !== null && total > MANY ? CALM_MS : QUICK_MS);

  const next = nexts[last];
  const more = useCallback(() => {
    if (typeof next === "string") setCursors((before) => (before.includes(next) ? before : [...before, next]));
  }, [next, setCursors]);
  const pending = queries[0]?.isPending ?? true;
  if (!pending) hold(held, name, pages);

  const missing = next === null ? 0 : Math.max(0, (total ?? 0) - held.rows.length);
  return {
    rows: held.rows,
    total,
    missing: missing > MOST_MISSING ? 0 : missing,
    pending,
    error: queries.find((query) => query.error !== null)?.error ?? null,
    hasMore: typeof next === "string",
    loadingMore: cursors.length > 1 && queries[last]?.data === undefined,
    more,
    onSight: setSeen,
    refetch: () => void cache.invalidateQueries({ queryKey: ROWS }),
  };
}

/** What is shown: the old rows while those of another filter are pending. */
interface Held {
  name: string;
  pages: LoadedPage[];
  rows: PagedRow[];
}

/** The rows stay the same array as long as the pages are the same. */
function hold(held: Held, name: string, pages: LoadedPage[]): void {
  const isSame = ({ page, at }: LoadedPage, place: number) =>
    page === held.pages[place]?.page && at === held.pages[place]?.at;
  if (held.name === name && pages.length === held.pages.length && pages.every(isSame)) return;
  held.name = name;
  held.pages = pages;
  held.rows = pagedRows(pages);
}

/** The cursors of the pages that are loaded, kept with them: whoever goes back finds the list as long as it was. */
function useCursors(filter: string): [Cursors, (update: (before: Cursors) => Cursors) => void] {
  const cache = useQueryClient();
  const { data } = useQuery({
    queryKey: [...keys.schedules, "cursors", filter],
    queryFn: () => FIRST,
    initialData: FIRST,
    enabled: false,
    gcTime: KEPT_MS,
  });
  const set = useCallback(
    (update: (before: Cursors) => Cursors) =>
      void cache.setQueryData<Cursors>([...keys.schedules, "cursors", filter], (before) => update(before ?? FIRST)),
    [cache, filter],
  );
  return [data, set];
}

/** What no row shows. */
const UNSEEN = new Set<LiveKind>(["run_progress", "session_event", "incident_changed"]);

/** Loads what is in sight anew after live events: soon when the list is short, calmly when it is long. */
function useGentleRefresh(pause: number): void {
  const cache = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  function refresh(): void {
    timer.current = undefined;
    // An answer that is on its way may be older than the event: the list is loaded again after it.
    if (cache.isFetching({ queryKey: ROWS }) > 0) timer.current = setTimeout(refresh, pause);
    else void cache.invalidateQueries({ queryKey: ROWS });
  }
  useLive("overview", (message) => {
    const matters =
      message.type === "skipped" ||
      (message.type === "event" && !UNSEEN.has(message.event.kind));
    if (matters) timer.current ??= setTimeout(refresh, pause);
  });
}
