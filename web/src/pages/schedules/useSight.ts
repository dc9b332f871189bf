import { useCallback, useEffect, useRef } from "react";

/** Counts the drawn rows by page and tells when other pages come into sight. */
export function useSight(onSight: (pages: ReadonlySet<number>) => void): (page: number, drawn: boolean) => void {
  const counts = useRef(new Map<number, number>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const told = useRef("");
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(
    (page: number, drawn: boolean) => {
      counts.current.set(page, (counts.current.get(page) ?? 0) + (drawn ? 1 : -1));
      // Rows come and go by the dozen while somebody scrolls: told once they rest.
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        const seen = [...counts.current].filter(([, count]) => count > 0).map(([each]) => each);
        const text = seen.sort((left, right) => left - right).join();
        if (text !== "" && text !== told.current) {
          told.current = text;
          onSight(new Set(seen));
        }
      }, 100);
    },
    [onSight],
  );
}
