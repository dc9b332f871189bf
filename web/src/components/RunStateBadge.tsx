/** The state of a run; one that was asked to stop says so until it has. */

import { useIsCancelling } from "@/api/queries/runs";
import type { Run } from "@/api/types";
import { Badge } from "@/components/Badge";
import { StateBadge } from "@/components/StateBadge";

export function RunStateBadge({ run }: { run: Pick<Run, "id" | "state" | "reason"> }) {
  if (useIsCancelling(run)) {
    return (
      <Badge tone="warn" icon="ban" title="It was told to stop, and is ended if it does not.">
        cancelling…
      </Badge>
    );
  }
  return <StateBadge state={run.state} reason={run.reason} />;
}
