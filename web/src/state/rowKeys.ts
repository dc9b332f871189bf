/** j, k and o in a list of rows. They hold a row and not a place: the list may be in another order when a key comes. */

import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { useShortcut } from "@/state/shortcuts";

export interface RowKeys<K> {
  /** The row that was walked to; null before the first key, and when it is gone. */
  at: K | null;
  /** Where it was then: there the list scrolls, and does not run after a row that moves. */
  place: number;
  /** Whether this row is to take the focus now; true once for each step. */
  claim: (row: K) => boolean;
}

interface Words {
  noun: string;
  group: string;
}

export function useRowKeys<K>(rows: readonly K[], open: (row: K) => void, { noun, group }: Words): RowKeys<K> {
  const [held, setHeld] = useState<{ at: K | null; place: number }>({ at: null, place: -1 });
  const wanted = useRef<K | null>(null);
  const found = held.at === null ? -1 : rows.indexOf(held.at);
  const at = found < 0 ? null : held.at;

  function walk(step: 1 | -1): void {
    // Where a row is gone, the next one has taken its place.
    const from = found >= 0 ? found : step > 0 ? held.place - 1 : held.place;
    const place = Math.max(0, Math.min(held.at === null ? 0 : from + step, rows.length - 1));
    const row = rows[place];
    if (row === undefined) return;
    wanted.current = row;
    setHeld({ at: row, place });
  }
  useShortcut("j", () => walk(1), { label: `Next ${noun}`, group });
  useShortcut("k", () => walk(-1), { label: `Previous ${noun}`, group });
  useShortcut("o", () => at !== null && open(at), { label: `Open the ${noun}`, group });

  const claim = useCallback((row: K): boolean => {
    if (wanted.current !== row) return false;
    wanted.current = null;
    return true;
  }, []);
  return { at, place: held.place, claim };
}

/** For the link of a row: it takes the focus when the keys have led to it, also if it is drawn only then. */
export function useRowFocus<K>(row: K, focused: boolean, claim: RowKeys<K>["claim"]): RefObject<HTMLAnchorElement | null> {
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (focused && claim(row)) link.current?.focus({ preventScroll: true });
  }, [row, focused, claim]);
  return link;
}
