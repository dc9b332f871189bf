import { useDeferredValue, useMemo, useState } from "react";
import type { Highlight } from "./AnsiText";
import type { LineStore } from "./lines";
import { type Match, type Matches, findMatches, firstMatchFrom, matchText, stepMatch } from "./search";

export interface OutputSearch {
  query: string;
  setQuery: (query: string) => void;
  matches: Matches;
  current: number;
  text: string;
  /** Goes to the next or previous hit and gives it; null when there is none. */
  step: (direction: 1 | -1, fromLine: number) => Match | null;
  highlights: (line: number) => Highlight[];
}

/** The search of an output view: its text, its hits, and which of them is the current one. */
export function useOutputSearch(store: LineStore, version: number): OutputSearch {
  const [query, setText] = useState("");
  const [current, setCurrent] = useState(-1);
  // Typing stays quick while 100,000 lines are searched behind it.
  const wanted = useDeferredValue(query);
  const matches = useMemo(
    () => findMatches(store.count, (line) => store.text(line), wanted),
    // `version` says that the store, which is changed in place, has grown.
    [store, version, wanted],
  );
  const byLine = useMemo(() => {
    const found = new Map<number, Highlight[]>();
    matches.hits.forEach((hit, index) => {
      const here = found.get(hit.line) ?? [];
      here.push({ start: hit.start, end: hit.end, current: index === current });
      found.set(hit.line, here);
    });
    return found;
  }, [matches, current]);
  return {
    query,
    setQuery: (next) => {
      setText(next);
      setCurrent(-1);
    },
    matches,
    current,
    text: current < 0 && matches.hits.length > 0 ? countText(matches) : matchText(current, matches),
    step: (direction, fromLine) => {
      const next =
        current < 0 && direction === 1
          ? firstMatchFrom(matches.hits, fromLine)
          : stepMatch(current, matches.hits.length, direction);
      setCurrent(next);
      return matches.hits[next] ?? null;
    },
    highlights: (line) => byLine.get(line) ?? [],
  };
}

function countText(matches: Matches): string {
  const count = matches.hits.length;
  return `${count.toLocaleString("en")}${matches.more ? "+" : ""} ${count === 1 ? "match" : "matches"}`;
}
