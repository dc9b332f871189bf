/** Says that the page does not hear from the server, or cannot load from it: what is shown stays, and is as old as it
 *  says. */

import { useOldSince } from "@/api/failing";
import { useConnection } from "@/api/live";
import { Icon } from "@/components/Icon";
import { useNow } from "@/state/ticker";
import { useZone } from "@/state/zone";
import { formatClock } from "@/time/format";

/** A short break, such as a restart of the server, needs no words. */
const GRACE = 1500;

export function StaleBar() {
  const { state, since } = useConnection();
  const oldSince = useOldSince();
  if (state === "stale" && since !== null) return <Stale since={since} why="The server does not answer" />;
  if (oldSince !== null) return <Stale since={oldSince} why="The server cannot load new data" />;
  return null;
}

function Stale({ since, why }: { since: number; why: string }) {
  const now = useNow();
  const { resolve } = useZone();
  if (now - since < GRACE) return null;
  return (
    <div
      role="status"
      className="flex items-center gap-2 border-b border-warn/35 bg-warn-soft px-4 py-1.5 text-xs md:px-6"
    >
      <Icon name="unplug" size={14} className="text-warn" />
      <span>
        <span className="font-medium text-warn">Stale since {formatClock(since, resolve(), true)}.</span> {why}. What
        you see stays, and is updated as soon as the server answers again.
      </span>
    </div>
  );
}
