import { useCallback, useRef, useState } from "react";

export interface Selection {
  names: ReadonlySet<string>;
  toggle: (name: string, selected: boolean, range: boolean) => void;
  set: (names: Iterable<string>) => void;
  clear: () => void;
}

/** Which rows are selected. With Shift, everything from the last one that was clicked. */
export function useSelection(order: readonly string[]): Selection {
  const [names, setNames] = useState<ReadonlySet<string>>(new Set());
  const last = useRef<string | null>(null);
  const rows = useRef(order);
  rows.current = order;

  const toggle = useCallback((name: string, selected: boolean, range: boolean) => {
    const from = range && last.current !== null ? rows.current.indexOf(last.current) : -1;
    const to = rows.current.indexOf(name);
    const touched = from < 0 || to < 0 ? [name] : rows.current.slice(Math.min(from, to), Math.max(from, to) + 1);
    last.current = name;
    setNames((before) => {
      const after = new Set(before);
      for (const each of touched) {
        if (selected) after.add(each);
        else after.delete(each);
      }
      return after;
    });
  }, []);

  return {
    names,
    toggle,
    set: useCallback((wanted: Iterable<string>) => setNames(new Set(wanted)), []),
    clear: useCallback(() => setNames(new Set()), []),
  };
}
