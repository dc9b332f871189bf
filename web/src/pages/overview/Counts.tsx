/** The numbers of the overview, each a way to what it counts. */

import type { Overview } from "@/api/types";
import { Stat } from "@/components/Stat";

export function Counts({ overview }: { overview: Overview }) {
  const { counts } = overview;
  const failed = overview.activity.reduce((sum, bucket) => sum + (bucket.states.failed ?? 0), 0);
  const errors = overview.activity.reduce((sum, bucket) => sum + bucket.with_errors, 0);
  return (
    // The last tile has two numbers, which stay on one line where there is room.
    <div className="grid grid-cols-3 gap-2 sm:gap-3 xl:grid-cols-[repeat(5,minmax(0,1fr))_minmax(0,1.25fr)]">
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
        value={
          errors === 0 ? (
            failed
          ) : (
            <>
              {failed.toLocaleString("en-US")}{" "}
              <span className="text-sm font-normal whitespace-nowrap text-warn">
                + {errors.toLocaleString("en-US")} with errors
              </span>
            </>
          )
        }
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
        label="Schedules on"
        icon="calendar"
        value={
          <>
            {counts.on.toLocaleString("en-US")}{" "}
            <span className="text-sm font-normal whitespace-nowrap text-muted">
              of {counts.schedules.toLocaleString("en-US")}
            </span>
          </>
        }
        to="/schedules"
        search={{ state: "on" }}
      />
    </div>
  );
}
