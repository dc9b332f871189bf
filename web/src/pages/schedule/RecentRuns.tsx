import { Link } from "@tanstack/react-router";
import { itemsOf } from "@/api/queries/pages";
import { useRuns } from "@/api/queries/runs";
import type { Run, Schedule } from "@/api/types";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { DueNote } from "@/components/DueNote";
import { RunDuration } from "@/components/Duration";
import { EmptyState } from "@/components/EmptyState";
import { ProblemNote } from "@/components/ProblemNote";
import { ProgressBar } from "@/components/ProgressBar";
import { RunStateBadge } from "@/components/RunStateBadge";
import { SkeletonRows } from "@/components/Skeleton";
import { commandFor } from "@/components/shellWord";
import { Time } from "@/components/Time";
import { useZone } from "@/state/zone";
import { TotalsLine } from "./TotalsLine";

const SHOWN = 8;

/** The latest runs, as they happen. */
export function RecentRuns({ schedule, onAll }: { schedule: Schedule; onAll: () => void }) {
  const query = useRuns({ schedule: schedule.name, limit: SHOWN });
  const runs = itemsOf(query.data).slice(0, SHOWN);
  return (
    <Card
      title="Recent"
      flush
      actions={
        runs.length > 0 && (
          <Button size="small" variant="ghost" onClick={onAll}>
            All runs
          </Button>
        )
      }
    >
      {query.error !== null && (
        <div className="p-4">
          <ProblemNote error={query.error} onRetry={() => void query.refetch()} />
        </div>
      )}
      {query.isPending && <SkeletonRows rows={SHOWN} />}
      {query.isSuccess && runs.length === 0 && (
        <EmptyState icon="history" title="No runs yet" command={commandFor("schedule trigger", schedule.name)} />
      )}
      <ul className="divide-y divide-line">
        {runs.map((run) => (
          <RecentRow key={run.id} run={run} />
        ))}
      </ul>
    </Card>
  );
}

function RecentRow({ run }: { run: Run }) {
  const { resolve } = useZone();
  return (
    <li>
      <Link to="/runs/$id" params={{ id: String(run.id) }} className="block px-4 py-2 hover:bg-sunken">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
          <RunStateBadge run={run} />
          <span>
            {run.started_at === null && <span className="text-xs text-muted">due </span>}
            <Time at={run.started_at ?? run.due_at} zone={run.zone} seconds />
          </span>
          <DueNote run={run} zone={resolve(run.zone)} />
          {run.count > 1 && <span className="text-xs text-muted">{run.count.toLocaleString("en-US")} due times</span>}
          <span className="ml-auto text-muted">
            <RunDuration run={run} />
          </span>
          <span className="w-16 text-right text-xs text-muted max-sm:hidden">{run.trigger.replace("_", "-")}</span>
        </div>
        {run.state === "running" && run.progress !== null && (
          <div className="mt-1.5">
            <ProgressBar progress={run.progress} label={`Progress of run ${run.id}`} />
          </div>
        )}
        <TotalsLine run={run} />
      </Link>
    </li>
  );
}
