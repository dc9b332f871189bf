/** What is due within the hour, counting down: each schedule once, with its soonest due time. */

import { Link } from "@tanstack/react-router";
import type { DueTime } from "@/api/types";
import { Card } from "@/components/Card";
import { Countdown, Time } from "@/components/Time";
import { counted } from "@/time/format";

const SHOWN = 12;

export interface DueSchedule {
  schedule: string;
  at: string;
  zone: string;
  /** How many due times are known. */
  times: number;
}

/** One row for each schedule, the soonest first: one that is due every ten seconds does not hide the others. */
export function bySchedule(due: readonly DueTime[]): DueSchedule[] {
  const found = new Map<string, DueSchedule>();
  for (const { schedule, at, zone } of due) {
    const known = found.get(schedule);
    if (known === undefined) found.set(schedule, { schedule, at, zone, times: 1 });
    else known.times += 1;
  }
  return [...found.values()];
}

export function DueCard({ due }: { due: DueTime[] }) {
  const schedules = bySchedule(due);
  const more = schedules.length - SHOWN;
  return (
    <Card
      title="Due within the hour"
      aside={due.length === 0 ? undefined : counted(schedules.length, "schedule")}
      flush
    >
      {due.length === 0 ? (
        <p className="px-4 py-6 text-center text-sm text-muted">Nothing is due within the hour.</p>
      ) : (
        <ul className="divide-y divide-line">
          {schedules.slice(0, SHOWN).map((each) => (
            <DueRow key={each.schedule} due={each} />
          ))}
        </ul>
      )}
      {due.length > 0 && (
        <Link to="/timeline" className="block border-t border-line px-4 py-2 text-xs text-muted hover:text-ink">
          {more > 0 ? `and ${counted(more, "more schedule", "more schedules")} on the timeline` : "See the timeline"}
        </Link>
      )}
    </Card>
  );
}

function DueRow({ due }: { due: DueSchedule }) {
  return (
    <li className="flex items-baseline gap-3 px-4 py-1.5 text-sm">
      <Link to="/schedules/$name" params={{ name: due.schedule }} className="min-w-0 truncate rounded hover:underline">
        {due.schedule}
      </Link>
      {due.times > 1 && <span className="text-xs whitespace-nowrap text-muted">and again</span>}
      <span className="ml-auto text-xs text-muted">
        <Time at={due.at} zone={due.zone} />
      </span>
      <Countdown to={due.at} className="w-20 text-right text-xs" />
    </li>
  );
}
