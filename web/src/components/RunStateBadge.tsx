/** The state of a run; one that was asked to stop says so until it has. */

import type { Run } from "@/api/types";
import { Badge } from "@/components/Badge";
import { StateBadge } from "@/components/StateBadge";

export function RunStateBadge({ run }: { run: Pick<Run, "state" | "reason" | "cancelling"> }) {
  if (run.cancelling !== null) {
    return (
      <Badge tone="warn" icon="ban" title={`It was told to stop, and will be ended if it does not: ${run.cancelling}`}>
        cancelling…
      </Badge>
    );
  }
  return <StateBadge state={run.state} reason={run.reason} />;
}
