/** The state of a run: colour, shape and word. */

import { Badge } from "@/components/Badge";
import { look } from "@/components/stateLook";

interface StateBadgeProps {
  state: string;
  /** What the ledger says about it; shown when the pointer rests on it. */
  reason?: string | null;
}

export function StateBadge({ state, reason }: StateBadgeProps) {
  const { label, icon, tone, meaning } = look(state);
  return (
    <Badge tone={tone} icon={icon} title={reason ?? meaning}>
      {label}
    </Badge>
  );
}
