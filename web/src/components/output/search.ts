// Finding text in output, and walking from one hit to the next.

export interface Match {
  line: number;
  start: number;
  end: number;
}

export interface Matches {
  hits: Match[];
  /** There are more than were kept. */
  more: boolean;
}

const MOST = 10_000;

/** All places of `query` in the lines, regardless of case, in reading order. */
export function findMatches(count: number, textOf: (line: number) => string, query: string): Matches {
  const needle = query.toLowerCase();
  const hits: Match[] = [];
  if (needle === "") return { hits, more: false };
  for (let line = 0; line < count; line += 1) {
    const text = textOf(line).toLowerCase();
    for (let start = text.indexOf(needle); start >= 0; start = text.indexOf(needle, start + needle.length)) {
      if (hits.length === MOST) return { hits, more: true };
      hits.push({ line, start, end: start + needle.length });
    }
  }
  return { hits, more: false };
}

/** The hit after or before `current`, round the ends; -1 when there is none. */
export function stepMatch(current: number, count: number, direction: 1 | -1): number {
  if (count === 0) return -1;
  if (current < 0) return direction === 1 ? 0 : count - 1;
  return (current + direction + count) % count;
}

/** The first hit at or behind a line, so that a search begins where somebody reads. */
export function firstMatchFrom(hits: readonly Match[], line: number): number {
  if (hits.length === 0) return -1;
  const found = hits.findIndex((hit) => hit.line >= line);
  return found < 0 ? 0 : found;
}

/** `3 of 12`, `no matches`, `1 of 10,000+`. */
export function matchText(current: number, matches: Matches): string {
  if (matches.hits.length === 0) return "no matches";
  return `${(current + 1).toLocaleString("en")} of ${matches.hits.length.toLocaleString("en")}${matches.more ? "+" : ""}`;
}
