// Pages with cursors: which follow each other, and which rows they hold together.

import type { Page, Schedule } from "@/api/types";

export const PAGE_ROWS = 200;

/** The first page has none. */
export type Cursors = (string | null)[];

/** The cursors when page `place`, the last one in sight, ends at `next`: what followed from elsewhere is dropped. */
export function cursorsAfter(cursors: Cursors, place: number, next: string | null): Cursors {
  const following = cursors[place + 1];
  if (following === undefined || following === next) return cursors;
  return cursors.slice(0, place + 1);
}

/** All rows in order. While schedules move between pages, one may be on two of them: it is shown once. */
export function uniqueRows(pages: readonly (Page<Schedule> | undefined)[]): Schedule[] {
  const seen = new Set<number>();
  const rows: Schedule[] = [];
  for (const page of pages) {
    for (const row of page?.items ?? []) {
      if (!seen.has(row.id)) rows.push(row);
      seen.add(row.id);
    }
  }
  return rows;
}
