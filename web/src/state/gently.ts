/** Does something soon, but not more often than the pause allows, however often it is asked for. */

import { useEffect, useRef } from "react";

export function useGently(run: () => void, pause: number): () => void {
  const latest = useRef(run);
  latest.current = run;
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
  return () => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      latest.current();
    }, pause);
  };
}
