/** The state of a run; one that was asked to stop says so until it has, and one that succeeded with errors how it did. */

import type { Run } from "@/api/types";
import { Badge } from "@/components/Badge";
import { StateBadge } from "@/components/StateBadge";
import { look, shownState } from "@/components/stateLook";

export function RunStateBadge({ run }: { run: Pick<Run, "state" | "cause" | "reason" | "cancelling"> }) {
  if (run.cancelling !== null) {
    return (
      <Badge tone="warn" icon="ban" title={`It was told to stop, and will be ended if it does not: ${run.cancelling}`}>
        cancelling…
      </Badge>
    );
  }
  if (shownState(run) === "errors") return <ErrorsBadge reason={run.reason} />;
  return <StateBadge state={run.state} reason={run.reason} />;
}

/** In few words: in most places its totals stand beside it. */
export function ErrorsBadge({ reason = null }: { reason?: string | null }) {
  const { tone, icon, meaning } = look("errors");
  return (
    <Badge tone={tone} icon={icon} title={reason === null ? meaning : `It succeeded with ${reason}.`}>
      <span className="sr-only">succeeded </span>
      with errors
    </Badge>
  );
}
