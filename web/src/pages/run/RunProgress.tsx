import type { Run } from "@/api/types";
import { ProgressBar } from "@/components/ProgressBar";
import { leftText, secondsLeft } from "@/components/output/phases";
import { useNow } from "@/state/ticker";

/** How far it is, and about how long it still takes if it goes on like this. */
export function RunProgress({ run }: { run: Run }) {
  const now = useNow();
  const since = run.attempts.at(-1)?.started_at ?? run.started_at;
  const left = secondsLeft(run.progress, since, now);
  return (
    <div className="mb-4">
      <ProgressBar progress={run.progress} label={`Progress of run ${run.id}`} />
      {left !== null && <p className="mt-0.5 text-right text-xs text-muted">{leftText(left)}</p>}
    </div>
  );
}
