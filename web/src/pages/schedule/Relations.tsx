/** Who comes before and after a schedule, with how each stands. */

import { Link } from "@tanstack/react-router";
import { useRelations } from "@/api/queries/schedules";
import type { Relations as RelationsAnswer, Schedule } from "@/api/types";
import { Badge } from "@/components/Badge";
import { BeforeAndAfter } from "@/components/BeforeAndAfter";
import { StateBadge } from "@/components/StateBadge";
import { stateLook } from "../schedules/scheduleState";

type Related = RelationsAnswer["upstreams"][number];

/** Nothing for the many schedules that come neither before nor after another one. */
export function Relations({ schedule }: { schedule: Schedule }) {
  const { data } = useRelations(schedule.name);
  if (data === undefined) return null;
  return <BeforeAndAfter name={schedule.name} before={nodes(data.upstreams)} after={nodes(data.dependents)} />;
}

function nodes(related: readonly Related[]) {
  return related.map((one) => ({ key: one.name, shown: <Node related={one} /> }));
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
