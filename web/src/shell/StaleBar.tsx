/** Says that the page does not hear from the server: what is shown stays, and is as old as it says. */

import { useConnection } from "@/api/live";
import { Icon } from "@/components/Icon";
import { useNow } from "@/state/ticker";
import { useZone } from "@/state/zone";
import { formatClock } from "@/time/format";

/** A short break, such as a restart of the server, needs no words. */
const GRACE = 1500;

export function StaleBar() {
  const { state, since } = useConnection();
  if (state !== "stale" || since === null) return null;
  return <Stale since={since} />;
}

function Stale({ since }: { since: number }) {
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
        <span className="font-medium text-warn">Stale since {formatClock(since, resolve(), true)}.</span> The server
        does not answer; what you see stays, and is loaded anew when it is back.
      </span>
    </div>
  );
}
