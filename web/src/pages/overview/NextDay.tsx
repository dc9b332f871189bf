/** How many due times each of the next 24 hours has. */

import type { Overview } from "@/api/types";
import { Card } from "@/components/Card";
import { useZone } from "@/state/zone";
import { counted, formatClock } from "@/time/format";

interface NextDayProps {
  hours: Overview["next24"];
  /** There are too many schedules to count all. */
  estimated: boolean;
  /** Of the server, where the schedules' own zones are wanted. */
  zone: string;
}

export function NextDay({ hours, estimated, zone: home }: NextDayProps) {
  const { resolve } = useZone();
  const zone = resolve(home);
  const most = Math.max(1, ...hours.map((hour) => hour.count));
  const total = hours.reduce((sum, hour) => sum + hour.count, 0);
  return (
    <Card title="Next 24 hours" aside={`${estimated ? "at least " : ""}${counted(total, "due time")}`}>
      <ol aria-label="Due times by hour" className="flex h-20 items-end gap-0.5">
        {hours.map((hour) => {
          const words = `${formatClock(Date.parse(hour.at), zone)}: ${counted(hour.count, "due time")}`;
          return (
            <li key={hour.at} title={words} className="group flex h-full min-w-0 flex-1 items-end">
              <span
                className="block w-full rounded-t-sm bg-(--state-queued) opacity-80 group-hover:opacity-100"
                style={{ height: hour.count === 0 ? "2px" : `${6 + (hour.count / most) * 94}%` }}
              />
              <span className="sr-only">{words}</span>
            </li>
          );
        })}
      </ol>
      <div aria-hidden="true" className="mt-1.5 flex text-2xs text-muted tabular-nums">
        {hours.map((hour, place) =>
          place % 6 === 0 ? (
            <span key={hour.at} className="w-1/4">
              {formatClock(Date.parse(hour.at), zone)}
            </span>
          ) : null,
        )}
      </div>
    </Card>
  );
}
