/** The numbers of the overview, each a way to what it counts. */

import type { Overview } from "@/api/types";
import { Stat } from "@/components/Stat";

export function Counts({ overview }: { overview: Overview }) {
  const { counts } = overview;
  const failed = overview.activity.reduce((sum, bucket) => sum + (bucket.states.failed ?? 0), 0);
  return (
    <div className="grid grid-cols-3 gap-2 sm:gap-3 lg:grid-cols-6">
      <Stat
        label="Running"
        icon="play"
        tone={counts.running > 0 ? "info" : undefined}
        value={counts.running}
        to="/runs"
        search={{ state: "running" }}
      />
      <Stat label="Queued" icon="hourglass" value={counts.queued} to="/runs" search={{ state: "queued" }} />
      <Stat
        label="Late"
        icon="clock"
        tone={counts.late > 0 ? "warn" : undefined}
        value={counts.late}
        to="/runs"
        search={{ state: "queued" }}
      />
      <Stat
        label="Failed, 24 h"
        icon="cross"
        tone={failed > 0 ? "bad" : undefined}
        value={failed}
        to="/runs"
        search={{ state: "failed", since: "24h" }}
      />
      <Stat
        label="Broken"
        icon="alert"
        tone={counts.broken > 0 ? "bad" : undefined}
        value={counts.broken}
        to="/schedules"
        search={{ state: "broken" }}
      />
      <Stat
        label="Schedules"
        icon="calendar"
        value={
          <>
            {counts.on}
            <span className="text-sm font-normal text-muted"> of {counts.schedules} on</span>
          </>
        }
        to="/schedules"
        search={{ state: "on" }}
      />
    </div>
  );
}
