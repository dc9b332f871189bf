/** Moments: in the chosen zone, with the whole truth when the pointer rests on them. */

import { useNow } from "@/state/ticker";
import { useZone } from "@/state/zone";
import { formatAge, formatFull, formatRelative, formatTime } from "@/time/format";

interface TimeProps {
  at: string | null | undefined;
  /** The zone of the schedule that it belongs to. */
  zone?: string | null;
  seconds?: boolean;
  className?: string;
}

/** "14:03", "tomorrow 09:00", "3 Dec 18:00". */
export function Time({ at, zone, seconds = false, className }: TimeProps) {
  const { resolve } = useZone();
  const now = useNow(60_000);
  if (!at) return <span className="text-muted">–</span>;
  const moment = Date.parse(at);
  const place = resolve(zone);
  return (
    <time
      dateTime={at}
      title={formatFull(moment, place)}
      className={`tabular-nums whitespace-nowrap ${className ?? ""}`}
    >
      {formatTime(moment, place, now, seconds)}
    </time>
  );
}

/** "3 m ago", ticking. */
export function Ago({ at, zone, className }: Omit<TimeProps, "seconds">) {
  const { resolve } = useZone();
  const now = useNow();
  if (!at) return <span className="text-muted">–</span>;
  const moment = Date.parse(at);
  return (
    <time
      dateTime={at}
      title={formatFull(moment, resolve(zone))}
      className={`tabular-nums whitespace-nowrap ${className ?? ""}`}
    >
      {formatAge((now - moment) / 1000)} ago
    </time>
  );
}

/** "in 4 m 12 s", ticking; "now" when it is due. A moment that is past says how late it is. */
export function Countdown({
  to,
  zone,
  className,
}: {
  to: string | null | undefined;
  zone?: string | null;
  className?: string;
}) {
  const { resolve } = useZone();
  const now = useNow();
  if (!to) return <span className="text-muted">–</span>;
  const moment = Date.parse(to);
  return (
    <time
      dateTime={to}
      title={formatFull(moment, resolve(zone))}
      className={`tabular-nums whitespace-nowrap ${className ?? ""}`}
    >
      {formatRelative(moment, now)}
    </time>
  );
}
