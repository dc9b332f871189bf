import { useRef, useSyncExternalStore } from "react";
import type { Run } from "@/api/types";

const NEAR_TOP = 100;

function onScroll(listener: () => void): () => void {
  window.addEventListener("scroll", listener, { passive: true });
  return () => window.removeEventListener("scroll", listener);
}

export interface HeldBack {
  shown: Run[];
  /** How many began meanwhile. */
  fresh: number;
}

/** While somebody reads further down, new runs are counted and not put in: the row below the pointer stays there. */
export function useHeldBack(runs: Run[]): HeldBack {
  const isDown = useSyncExternalStore(onScroll, () => window.scrollY > NEAR_TOP);
  const top = useRef<number | undefined>(undefined);
  const fresh = isDown ? runs.findIndex((run) => run.id === top.current) : 0;
  if (fresh <= 0) top.current = runs[0]?.id;
  return fresh <= 0 ? { shown: runs, fresh: 0 } : { shown: runs.slice(fresh), fresh };
}
