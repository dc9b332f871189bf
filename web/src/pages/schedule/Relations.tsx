/** Who comes before and after a schedule, as a small graph: what it runs after on the left, what follows it on the right. */

import { Link } from "@tanstack/react-router";
import { useRelations } from "@/api/queries/schedules";
import type { Relations as RelationsAnswer, Schedule } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { StateBadge } from "@/components/StateBadge";
import { stateLook } from "../schedules/scheduleState";

type Related = RelationsAnswer["upstreams"][number];

/** Nothing for the many schedules that come neither before nor after another one. */
export function Relations({ schedule }: { schedule: Schedule }) {
  const { data } = useRelations(schedule.name);
  if (data === undefined || data.upstreams.length + data.dependents.length === 0) return null;
  return (
    <Card title="Before and after">
      <div className="flex flex-col gap-2 sm:flex-row sm:items-stretch">
        <Side label="Runs after" related={data.upstreams} />
        {data.upstreams.length > 0 && <Arrow />}
        <div className="flex min-w-0 flex-1 items-center rounded-md border-2 border-accent px-3 py-2 text-sm font-semibold">
          <span className="min-w-0 break-words">{schedule.name}</span>
        </div>
        {data.dependents.length > 0 && <Arrow />}
        <Side label="Followed by" related={data.dependents} />
      </div>
    </Card>
  );
}

function Side({ label, related }: { label: string; related: readonly Related[] }) {
  if (related.length === 0) return null;
  return (
    <ul aria-label={label} className="flex min-w-0 flex-1 flex-col justify-center gap-2">
      {related.map((each) => (
        <li key={each.name} className="min-w-0 rounded-md border border-line px-3 py-2 text-sm">
          <Node related={each} />
        </li>
      ))}
    </ul>
  );
}

function Node({ related }: { related: Related }) {
  const { name, state, last_state } = related;
  if (state === null) {
    return (
      <>
        <span className="break-words font-medium">{name}</span>{" "}
        <span className="text-xs text-bad">There is no such schedule.</span>
      </>
    );
  }
  return (
    <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <Link to="/schedules/$name" params={{ name }} className="min-w-0 break-words font-medium text-accent hover:underline">
        {name}
      </Link>
      {related.running ? (
        <StateBadge state="running" />
      ) : state !== "on" ? (
        <Badge {...stateLook(state as Schedule["state"])}>{state}</Badge>
      ) : (
        last_state !== null && <StateBadge state={last_state} />
      )}
    </span>
  );
}

function Arrow() {
  return (
    <span aria-hidden="true" className="self-center text-muted">
      <span className="hidden sm:inline">→</span>
      <span className="sm:hidden">↓</span>
    </span>
  );
}
