// A list of runs that is loaded anew after an event: its first page is asked for, the others are kept for a while. The
// live stream patches what is loaded, so that only new runs are wanted.

import type { InfiniteData } from "@tanstack/react-query";
import type { Page, Run } from "@/api/types";

const KEPT_MS = 60_000;
const MOST = 1000;

export interface RunPage extends Page<Run> {
  loadedAt: number;
}

export type RunPages = InfiniteData<RunPage, string | null>;

/** The page at this cursor: as it is held, or loaded. */
export async function freshPage(
  held: () => RunPages | undefined,
  cursor: string | null,
  load: () => Promise<Page<Run>>,
): Promise<RunPage> {
  const find = (): RunPage | undefined => {
    const pages = held();
    return pages?.pages[pages.pageParams.indexOf(cursor)];
  };
  const kept = cursor === null ? undefined : find();
  if (kept !== undefined && Date.now() - kept.loadedAt < KEPT_MS) return kept;
  const page = { ...(await load()), loadedAt: Date.now() };
  const old = cursor === null ? find() : undefined;
  return old === undefined ? page : joined(page, old);
}

/** The fresh first page, and what it pushed off its end: it still ends where the second page begins. */
function joined(fresh: RunPage, old: RunPage): RunPage {
  const ids = new Set(fresh.items.map((run) => run.id));
  const meet = old.items.findLastIndex((run) => ids.has(run.id));
  const pushed = old.items.slice(meet + 1);
  if (meet < 0 || fresh.next === null || ids.size + pushed.length > MOST) return fresh;
  return { ...fresh, items: [...fresh.items, ...pushed], next: old.next };
}
