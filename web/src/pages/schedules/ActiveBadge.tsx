import type { Schedule } from "@/api/types";
import { StateBadge } from "@/components/StateBadge";

/** Whether some of its work is running, or only waits to. */
export function ActiveBadge({ schedule: { running, queued } }: { schedule: Schedule }) {
  if (running === 0) return null;
  return <StateBadge state={running > queued ? "running" : "queued"} />;
}
