// Pages with cursors: which follow each other, and which rows they hold together.

import type { Page, Schedule } from "@/api/types";

export const PAGE_ROWS = 200;

/** The first page has none. */
export type Cursors = (string | null)[];

/** The cursors when page `place` ends at `next`. What followed from elsewhere is dropped; in sight it begins there. */
export function cursorsAfter(cursors: Cursors, place: number, next: string | null, lastSeen: number): Cursors {
  const following = cursors[place + 1];
  if (following === undefined || following === next) return cursors;
  const before = cursors.slice(0, place + 1);
  return place < lastSeen && next !== null ? [...before, next] : before;
}

export interface LoadedPage {
  page: Page<Schedule> | undefined;
  /** When it was loaded. */
  at: number;
}

export interface PagedRow {
  schedule: Schedule;
  /** The page that it came with. */
  page: number;
}

/** All rows in order. While schedules move between pages, one may be on two of them: its newest copy is shown. */
export function pagedRows(pages: readonly LoadedPage[]): PagedRow[] {
  const newest = new Map<number, { page: number; at: number }>();
  pages.forEach(({ page, at }, place) => {
    for (const { id } of page?.items ?? []) {
      const known = newest.get(id);
      if (known === undefined || at > known.at) newest.set(id, { page: place, at });
    }
  });
  return pages.flatMap(({ page }, place) =>
    (page?.items ?? [])
      .filter(({ id }) => newest.get(id)?.page === place)
      .map((schedule) => ({ schedule, page: place })),
  );
}
