import { useState } from "react";
import { useNextTimes } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { QueryView } from "@/components/QueryView";
import { SkeletonRows } from "@/components/Skeleton";
import { Countdown, Time } from "@/components/Time";
import { reasonText } from "../schedules/scheduleState";

const FEW = 5;
const MANY = 20;

function whyNone(schedule: Schedule, reason: string | null): string {
  if (schedule.broken !== null) return "None until it is fixed and enabled again.";
  if (schedule.state === "off") return "None while it is off.";
  return reasonText(reason ?? schedule.next_run_reason) || "It is no longer due.";
}

/** The next due times, computed by the same code as the engine's. */
export function Upcoming({ schedule }: { schedule: Schedule }) {
  const [count, setCount] = useState(FEW);
  const query = useNextTimes(schedule.name, count);
  const rest = schedule.next_run_at !== null;
  return (
    <Card
      title="Upcoming"
      flush
      actions={
        rest && (
          <Button size="small" variant="ghost" onClick={() => setCount(count === FEW ? MANY : FEW)}>
            {count === FEW ? `Show ${MANY}` : `Show ${FEW}`}
          </Button>
        )
      }
    >
      <QueryView query={query} skeleton={<SkeletonRows rows={FEW} />}>
        {(times) =>
          times.next.length === 0 ? (
            <p className="px-4 py-6 text-sm text-muted">
              {whyNone(schedule, times.reason)}
            </p>
          ) : (
            <>
              {(times.reason ?? schedule.next_run_reason) !== null && (
                <p className="border-b border-line px-4 py-2 text-xs text-warn">
                  {times.reason ?? schedule.next_run_reason}
                </p>
              )}
              <ol className="divide-y divide-line">
                {times.next.map((at) => (
                  <li key={at} className="flex items-center justify-between gap-3 px-4 py-2 text-sm">
                    <Time at={at} zone={schedule.zone} seconds={!at.endsWith(":00Z")} />
                    <Countdown to={at} zone={schedule.zone} className="text-xs text-muted" />
                  </li>
                ))}
              </ol>
            </>
          )
        }
      </QueryView>
    </Card>
  );
}
