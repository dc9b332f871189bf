/** The run log of a schedule, over the page: started and finished in the browser's own time, whatever zone is chosen. */

import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { itemsOf } from "@/api/queries/pages";
import { useRuns } from "@/api/queries/runs";
import type { Run, RunState } from "@/api/types";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DueNote } from "@/components/DueNote";
import { RunDuration } from "@/components/Duration";
import { EmptyState } from "@/components/EmptyState";
import { ProblemNote } from "@/components/ProblemNote";
import { RunStateBadge } from "@/components/RunStateBadge";
import { Select } from "@/components/Select";
import { SkeletonRows } from "@/components/Skeleton";
import { commandFor } from "@/components/shellWord";
import { STATES } from "@/components/stateLook";
import { browserZone } from "@/state/zone";
import { useNow } from "@/state/ticker";
import { formatFull, formatTime } from "@/time/format";
import { TotalsLine } from "./TotalsLine";

const COLUMNS = "gap-x-3 sm:grid-cols-[9.5rem_minmax(0,1fr)_minmax(0,1fr)_4.5rem_5rem]";

interface Props {
  schedule: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

export function RunsDialog({ schedule, open, onOpenChange }: Props) {
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      wide
      title={`Runs of ${schedule}`}
      description={`Times are in this browser's zone, ${browserZone()}.`}
    >
      {open && <RunLog schedule={schedule} />}
    </Dialog>
  );
}

function RunLog({ schedule }: { schedule: string }) {
  const [state, setState] = useState("");
  const query = useRuns({ schedule, limit: 50, ...(state !== "" && { state: [state as RunState] }) });
  const runs = itemsOf(query.data);
  return (
    <div className="flex flex-col gap-3">
      <Select
        label="State"
        hideLabel
        value={state}
        onChange={setState}
        options={[{ value: "", label: "Any state" }, ...STATES]}
        className="w-40"
      />
      {query.error !== null && <ProblemNote error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending && <SkeletonRows rows={6} />}
      {query.isSuccess && runs.length === 0 && (
        <NoRuns schedule={schedule} state={state} onClear={() => setState("")} />
      )}
      {runs.length > 0 && (
        <ul className="divide-y divide-line rounded-lg border border-line">
          <li aria-hidden="true" className={`grid px-3 py-1.5 text-xs text-muted max-sm:hidden ${COLUMNS}`}>
            <span>State, run</span>
            <span>Started</span>
            <span>Finished</span>
            <span>Took</span>
            <span className="text-right">Trigger</span>
          </li>
          {runs.map((run) => (
            <LogRow key={run.id} run={run} />
          ))}
        </ul>
      )}
      {query.hasNextPage && (
        <Button busy={query.isFetchingNextPage} className="self-center" onClick={() => void query.fetchNextPage()}>
          Load more
        </Button>
      )}
    </div>
  );
}

function NoRuns({ schedule, state, onClear }: { schedule: string; state: string; onClear: () => void }) {
  if (state !== "") {
    const action = <Button onClick={onClear}>Show any state</Button>;
    return <EmptyState icon="history" title={`No ${state} runs`} action={action} />;
  }
  return (
    <EmptyState
      icon="history"
      title="No runs yet"
      text="Every due time becomes a run. To start one now:"
      command={commandFor("schedule trigger", schedule)}
    />
  );
}

function LogRow({ run }: { run: Run }) {
  return (
    <li>
      <Link to="/runs/$id" params={{ id: String(run.id) }} className="block px-3 py-2 hover:bg-sunken">
        <div className={`grid grid-cols-[minmax(0,1fr)_auto] items-center gap-y-1 text-sm ${COLUMNS}`}>
          <span className="flex items-baseline gap-2">
            <RunStateBadge run={run} />
            <span className="text-xs text-muted tabular-nums">
              <span className="sr-only">run </span>
              {run.id}
            </span>
          </span>
          <span className="max-sm:col-span-2 max-sm:row-start-2">
            <span className="text-xs text-muted sm:hidden">Started </span>
            <LocalTime at={run.started_at} otherwise={run.due_at} /> <DueNote run={run} zone={browserZone()} />
          </span>
          <span className="max-sm:col-span-2 max-sm:row-start-3">
            <span className="text-xs text-muted sm:hidden">Finished </span>
            <LocalTime at={run.finished_at} />
          </span>
          <span className="text-muted max-sm:col-span-2">
            <span className="text-xs sm:hidden">Took </span>
            <RunDuration run={run} />
          </span>
          <span className="text-right text-xs text-muted max-sm:col-start-2 max-sm:row-start-1">
            {run.trigger.replace("_", "-")}
          </span>
        </div>
        <TotalsLine run={run} />
      </Link>
    </li>
  );
}

/** What never started is shown with its due time. */
function LocalTime({ at, otherwise = null }: { at: string | null; otherwise?: string | null }) {
  const now = useNow(60_000);
  const zone = browserZone();
  const shown = at ?? otherwise;
  if (shown === null) return <span className="text-muted">–</span>;
  const moment = Date.parse(shown);
  return (
    <time dateTime={shown} title={formatFull(moment, zone)} className="whitespace-nowrap tabular-nums">
      {at === null && <span className="text-muted">due </span>}
      {formatTime(moment, zone, now, true)}
    </time>
  );
}
