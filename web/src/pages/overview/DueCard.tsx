/** What is due within the hour, counting down, and what is overdue because nobody runs it. */

import { Link } from "@tanstack/react-router";
import type { DueTime } from "@/api/types";
import { Card } from "@/components/Card";
import { Countdown, Time } from "@/components/Time";
import { useNow } from "@/state/ticker";
import { counted } from "@/time/format";

const SHOWN = 12;
/** What an engine has not taken up by then is overdue. */
const LATE_MS = 10_000;

interface Props {
  /** Each schedule once, the soonest first. */
  due: DueTime[];
  /** How many there are in all; `due` has the first of them. */
  total: number;
}

export function DueCard({ due, total }: Props) {
  const shown = due.slice(0, SHOWN);
  const more = total - shown.length;
  return (
    <Card title="Due within the hour" aside={due.length === 0 ? undefined : counted(total, "schedule")} flush>
      {due.length === 0 ? (
        <p className="px-4 py-6 text-center text-sm text-muted">Nothing is due within the hour.</p>
      ) : (
        <ul className="divide-y divide-line">
          {shown.map((each) => (
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

function DueRow({ due }: { due: DueTime }) {
  const isOverdue = useNow() - Date.parse(due.at) > LATE_MS;
  return (
    <li className="flex items-baseline gap-3 px-4 py-1.5 text-sm">
      <Link to="/schedules/$name" params={{ name: due.schedule }} className="min-w-0 truncate rounded hover:underline">
        {due.schedule}
      </Link>
      {isOverdue && <span className="text-xs text-warn">overdue</span>}
      <span className="ml-auto text-xs text-muted">
        <Time at={due.at} zone={due.zone} />
      </span>
      <Countdown to={due.at} className="w-20 text-right text-xs" />
    </li>
  );
}
