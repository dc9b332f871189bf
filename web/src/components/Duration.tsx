/** How long something took, or takes. */

import type { Run } from "@/api/types";
import { useNow } from "@/state/ticker";
import { formatDuration, formatSpan } from "@/time/format";

export function Duration({ seconds }: { seconds: number | null | undefined }) {
  if (seconds === null || seconds === undefined) return <span className="text-muted">–</span>;
  return <span className="tabular-nums whitespace-nowrap">{formatDuration(seconds)}</span>;
}

type Timed = Pick<Run, "state" | "started_at" | "finished_at">;

/** The run time of a run; it ticks while it is running. */
export function RunDuration({ run }: { run: Timed }) {
  if (run.started_at === null) return <span className="text-muted">–</span>;
  const started = Date.parse(run.started_at);
  if (run.finished_at !== null) return <Duration seconds={(Date.parse(run.finished_at) - started) / 1000} />;
  return run.state === "running" ? <Running since={started} /> : <span className="text-muted">–</span>;
}

function Running({ since }: { since: number }) {
  const now = useNow();
  return <span className="tabular-nums whitespace-nowrap">{formatSpan(Math.max(0, (now - since) / 1000))}</span>;
}
