/** Which runs come before and after a run: the steps of its chain, or runs of schedules that follow others. */

import { Link } from "@tanstack/react-router";
import { useRunRelations } from "@/api/queries/runs";
import type { Run, RunRelations as RelationsAnswer } from "@/api/types";
import { BeforeAndAfter } from "@/components/BeforeAndAfter";
import { StateBadge } from "@/components/StateBadge";
import { hasEnded } from "@/components/stateLook";

type Related = RelationsAnswer["upstreams"][number];

const SHOWN = 8;

/** Nothing for the many runs that come neither before nor after another one. */
export function RunRelations({ run }: { run: Run }) {
  const { data } = useRunRelations(run.id, !hasEnded(run.state));
  if (data === undefined) return null;
  return <BeforeAndAfter name={`Run ${run.id}`} before={nodes(data.upstreams)} after={nodes(data.dependents)} />;
}

function nodes(related: readonly Related[]) {
  const shown = related.slice(0, SHOWN).map((one) => ({ key: one.id, shown: <Node related={one} /> }));
  const more = related.length - shown.length;
  return more > 0 ? [...shown, { key: -1, shown: <>and {more} more</> }] : shown;
}

function Node({ related }: { related: Related }) {
  const { id, schedule, task, state } = related;
  const of = schedule ?? task;
  return (
    <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
      {state === null ? (
        <span className="font-medium">Run {id}</span>
      ) : (
        <Link to="/runs/$id" params={{ id: String(id) }} className="font-medium text-accent hover:underline">
          Run {id}
        </Link>
      )}
      {of !== null && <span className="min-w-0 break-words">{of}</span>}
      {state === null ? <span className="text-xs text-muted">removed</span> : <StateBadge state={state} />}
    </span>
  );
}
