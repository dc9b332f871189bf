/** One run: what it went through, its live output, attempts, result and totals, and why it ended so. */

import { Link, useParams } from "@tanstack/react-router";
import { downloadOutput, useRun } from "@/api/queries/runs";
import type { Run } from "@/api/types";
import { Banner } from "@/components/Banner";
import { buttonClass } from "@/components/Button";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { ProblemNote } from "@/components/ProblemNote";
import { QueryView } from "@/components/QueryView";
import { RunStateBadge } from "@/components/RunStateBadge";
import { SkeletonCards } from "@/components/Skeleton";
import { plainText } from "@/components/output/ansi";
import { AttemptList } from "@/components/output/AttemptList";
import { ErrorText } from "@/components/output/ErrorText";
import { shortened } from "@/components/output/shortened";
import { OutputView } from "@/components/output/OutputView";
import { StateTimeline } from "@/components/output/StateTimeline";
import { useOutput } from "@/components/output/useOutput";
import { hasEnded, look, shownState } from "@/components/stateLook";
import { useZone } from "@/state/zone";
import { BlockedStrip } from "../schedule/BlockedStrip";
import { WorkView } from "../schedule/WorkView";
import { ResultView } from "./ResultView";
import { RunActions } from "./RunActions";
import { RunDetails } from "./RunDetails";
import { RunProgress } from "./RunProgress";
import { RunRelations } from "./RunRelations";
import { Totals } from "./Totals";

/** Characters of a reason above its error. */
const SUMMARY = 200;
const LIST = { label: "All runs", to: "/runs" };

export function RunPage() {
  const { id: text = "" } = useParams({ strict: false });
  const id = Number(text);
  if (!Number.isInteger(id) || id < 1)
    return (
      <EmptyState
        icon="search"
        title={`There is no run ${text}`}
        text="The id of a run is a number."
        action={
          <Link to="/runs" className={buttonClass()}>
            All runs
          </Link>
        }
      />
    );
  return <OneRun key={id} id={id} />;
}

function OneRun({ id }: { id: number }) {
  const query = useRun(id);
  return (
    <QueryView query={query} skeleton={<SkeletonCards cards={3} />} page={{ title: `Run ${id}`, list: LIST }}>
      {(run) => <Loaded run={run} />}
    </QueryView>
  );
}

function Loaded({ run }: { run: Run }) {
  const of = run.schedule ?? run.task;
  const progressing = run.state === "running" && run.progress !== null;
  return (
    <>
      <PageHeader
        title={`Run ${run.id}`}
        heading={
          <span className="flex flex-wrap items-center gap-2.5">
            Run {run.id} <RunStateBadge run={run} />
          </span>
        }
        crumbs={
          run.schedule === null || run.schedule_id === null
            ? [{ label: "Runs", to: "/runs" }]
            : [
                { label: "Schedules", to: "/schedules" },
                { label: run.schedule, to: `/schedules/${encodeURIComponent(run.schedule)}` },
              ]
        }
        description={
          of === null ? (
            "Enqueued without a schedule"
          ) : run.schedule === null ? (
            `Task ${of}`
          ) : (
            <OfSchedule name={run.schedule} removed={run.schedule_id === null} />
          )
        }
        actions={<RunActions run={run} />}
      />
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4 xl:grid-cols-[minmax(0,1fr)_20rem]">
        <div className="flex min-w-0 flex-col gap-4">
          {run.blocked_by && <BlockedStrip blocked={run.blocked_by} zone={run.zone} />}
          {run.reason !== null && !run.blocked_by?.sentence.includes(run.reason) && <Reason run={run} />}
          <Card>
            {progressing && <RunProgress run={run} />}
            <StateTimeline run={run} bare={progressing} />
          </Card>
          {run.error !== null && (
            <Card title="Error">
              <div className="-mt-2">
                <ErrorText text={run.error} whole />
              </div>
            </Card>
          )}
          <Output run={run} />
          {/* Behind the output: many steps would push what is printed last out of sight. */}
          <RunRelations run={run} />
          {run.attempts.length > 1 && (
            <Card title="Attempts" aside={run.attempts.length} flush>
              <AttemptList attempts={run.attempts} zone={run.zone} />
            </Card>
          )}
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          {Object.keys(run.totals).length > 0 && (
            <Card title="Totals">
              <Totals totals={run.totals} />
            </Card>
          )}
          {run.result !== null && run.result !== undefined && (
            <Card title="Result" flush>
              <ResultView result={run.result} />
            </Card>
          )}
          <Card title="Details">
            <RunDetails run={run} />
          </Card>
          <Card title="Work">
            <WorkView work={run.work} />
          </Card>
        </div>
      </div>
    </>
  );
}

function OfSchedule({ name, removed }: { name: string; removed: boolean }) {
  if (removed) return `of ${name}, which was deleted after it had run`;
  return (
    <>
      of{" "}
      <Link to="/schedules/$name" params={{ name }} className="font-medium text-ink hover:underline">
        {name}
      </Link>
    </>
  );
}

/** Why it is as it is. A failure has its error below; the rest is told here. */
function Reason({ run }: { run: Run }) {
  if (run.reason === run.error) return null;
  const tone = run.state === "failed" ? "bad" : look(shownState(run)).tone === "warn" ? "warn" : "info";
  // All of a long one is in the error.
  const reason = plainText(run.reason ?? "");
  const said = run.error === null ? reason : shortened(reason, SUMMARY);
  if (!hasEnded(run.state)) return <Banner tone={tone} title={said} />;
  // `cancelled by ada` begins with the state: it is not said twice.
  const state = run.cancelled_by === null ? run.state : `${run.state} by ${run.cancelled_by}`;
  const joined = shownState(run) === "errors" ? `succeeded with ${said}` : `${state}: ${said}`;
  const whole = said.startsWith(run.state) ? said : joined;
  return <Banner tone={tone} title={whole.charAt(0).toUpperCase() + whole.slice(1)} />;
}

function Output({ run }: { run: Run }) {
  const { resolve } = useZone();
  const live = !hasEnded(run.state);
  const output = useOutput(run.id, live);
  const problem = output.error !== null && <ProblemNote error={output.error} onRetry={output.reload} />;
  if (problem && output.store.count === 0) return problem;
  // What was never executed printed nothing: an empty box would only be in the way.
  if (!live && run.attempts.length === 0 && output.store.count === 0) return null;
  return (
    <>
      {/* The rest of an ended one does not come by itself: what is here would pass for the whole. */}
      {!live && problem}
      {/* What is printed last is in sight, without scrolling, also on the screen of a small laptop. */}
      <OutputView
        store={output.store}
        version={output.version}
        loading={output.loading}
        live={live}
        zone={resolve(run.zone)}
        starts={run.attempts.map((attempt) => Date.parse(attempt.started_at))}
        onDownload={() => downloadOutput(run.id)}
        className={output.store.count > 8 ? "h-[clamp(14rem,calc(100dvh-25rem),36rem)]" : output.store.count > 0 || live ? "h-64" : "h-28"}
      />
    </>
  );
}
