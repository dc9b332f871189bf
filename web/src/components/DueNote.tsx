/** When a run was due, where that is not about when it started: a backfill, a catch-up, a long wait. */

import type { Run } from "@/api/types";
import { useNow } from "@/state/ticker";
import { formatFull, formatTime } from "@/time/format";

const NEAR = 60_000;

interface DueNoteProps {
  run: Pick<Run, "due_at" | "started_at">;
  /** The zone to show it in. */
  zone: string;
}

export function DueNote({ run, zone }: DueNoteProps) {
  const now = useNow(60_000);
  const due = Date.parse(run.due_at);
  if (run.started_at === null || Math.abs(Date.parse(run.started_at) - due) <= NEAR) return null;
  return (
    <span className="text-xs whitespace-nowrap text-muted">
      due{" "}
      <time dateTime={run.due_at} title={formatFull(due, zone)} className="tabular-nums">
        {formatTime(due, zone, now)}
      </time>
    </span>
  );
}
