/** One run in the conversation of a session: what was sent, and below it what became of that. */

import { Link } from "@tanstack/react-router";
import { memo, type ReactNode } from "react";
import { useWaiting } from "@/api/queries/sessions";
import type { Run } from "@/api/types";
import { Badge } from "@/components/Badge";
import { RunDuration } from "@/components/Duration";
import { ProgressBar } from "@/components/ProgressBar";
import { RunStateBadge } from "@/components/RunStateBadge";
import { shownState } from "@/components/stateLook";
import { Time } from "@/components/Time";
import { ErrorText } from "@/components/output/ErrorText";
import { totalsText, totalText } from "@/pages/run/Totals";
import { WorkView } from "@/pages/schedule/WorkView";
import { FoldedText, RunText } from "@/pages/sessions/FoldedText";
import { LiveOutput } from "@/pages/sessions/LiveOutput";
import {
  answerText,
  type Entry,
  isJsonAnswer,
  outcomeOf,
  payloadsOf,
  sentence,
  sentTexts,
  textOf,
} from "@/pages/sessions/entries";
import { counted } from "@/time/format";

export const ThreadRun = memo(function ThreadRun({ run, messages }: Entry) {
  return (
    <article aria-label={`Run ${run.id}`} className="flex flex-col gap-2">
      <Bubble head={<Sender run={run} messages={messages} />}>
        <Sent run={run} />
      </Bubble>
      <div className="mr-auto flex w-fit max-w-full min-w-0 flex-col gap-1.5 rounded-lg border border-line bg-surface px-3 py-2 sm:max-w-[88%]">
        <Became run={run} />
        <Facts run={run} />
      </div>
    </article>
  );
});

/** A text that is on its way to the server. */
export function Unsent({ text }: { text: string }) {
  return (
    <article aria-label="Message on its way" className="flex flex-col">
      <Bubble head="sending…">
        <FoldedText text={text} />
      </Bubble>
    </article>
  );
}

function Bubble({ head, children }: { head: ReactNode; children: ReactNode }) {
  return (
    <div className="ml-auto flex w-fit max-w-full min-w-0 flex-col gap-1 rounded-lg bg-accent-soft px-3 py-2 sm:max-w-[88%]">
      <p className="flex flex-wrap gap-x-2 text-xs text-accent">{head}</p>
      {children}
    </div>
  );
}

function Sender({ run, messages }: Entry) {
  return (
    <>
      {run.schedule === null ? (
        <span>{run.trigger === "message" ? "message" : `run ${run.id}`}</span>
      ) : run.schedule_id === null ? (
        <span>schedule {run.schedule}</span>
      ) : (
        <Link to="/schedules/$name" params={{ name: run.schedule }} className="rounded hover:underline">
          schedule {run.schedule}
        </Link>
      )}
      <Time at={run.due_at} seconds />
      {messages > 1 && <span>{counted(messages, "message")} in one</span>}
    </>
  );
}

function Sent({ run }: { run: Run }) {
  const payloads = payloadsOf(run);
  if (run.work.kind !== "agent" && payloads.length === 0) return <WorkView work={run.work} />;
  // Of a burst that was cut for the list, more payloads may come with the whole.
  if (run.cut?.includes("work")) return <RunText run={run} part="work" read={(whole) => sentTexts(whole).join("\n\n")} />;
  if (run.work.kind === "agent") return <FoldedText text={run.work.prompt} />;
  return payloads.map((payload, place) => (
    <FoldedText key={place} text={textOf(payload)} mono={typeof payload !== "string"} />
  ));
}

function Became({ run }: { run: Run }) {
  switch (run.state) {
    case "queued":
      return <Waiting run={run} />;
    case "running":
      return <UnderWay run={run} />;
    case "succeeded":
      return (
        <>
          {shownState(run) === "errors" && <WithErrors run={run} />}
          <Answer run={run} />
        </>
      );
    default:
      return <Ended run={run} />;
  }
}

function WithErrors({ run }: { run: Run }) {
  return (
    <div className="flex flex-wrap items-baseline gap-x-2 gap-y-1 text-sm">
      <RunStateBadge run={run} />
      <span className="text-muted">{totalsText(run.totals)}</span>
    </div>
  );
}

function Waiting({ run }: { run: Run }) {
  const reason = useWaiting(run).data?.reason ?? run.reason;
  return (
    <div className="flex flex-wrap items-baseline gap-x-2 gap-y-1 text-sm">
      <Badge tone="wait" icon="hourglass">
        waiting
      </Badge>
      <span aria-live="off" className="min-w-0 break-words text-muted">
        {sentence(reason)}
      </span>
    </div>
  );
}

function UnderWay({ run }: { run: Run }) {
  return (
    <>
      <div className="flex items-center gap-2">
        <RunStateBadge run={run} />
      </div>
      {run.progress !== null && (
        <div aria-live="off">
          <ProgressBar progress={run.progress} label={`Progress of run ${run.id}`} />
        </div>
      )}
      <LiveOutput key={run.id} run={run.id} />
    </>
  );
}

function Answer({ run }: { run: Run }) {
  if (!answerText(run)) return <p className="text-sm text-muted">Done, without an answer.</p>;
  return <RunText run={run} part="result" read={(whole) => answerText(whole) ?? ""} mono={isJsonAnswer(run)} />;
}

function Ended({ run }: { run: Run }) {
  const { label, icon, tone, reason } = outcomeOf(run);
  const told = run.error === null || run.reason !== run.error;
  return (
    <>
      <div className="flex flex-wrap items-baseline gap-x-2 gap-y-1 text-sm">
        <Badge tone={tone} icon={icon}>
          {label}
        </Badge>
        {told && <span className="min-w-0 break-words">{reason}</span>}
      </div>
      {run.error !== null && <ErrorText text={run.error} />}
    </>
  );
}

/** What it took. It ticks while the run is under way, and is not read out. */
function Facts({ run }: { run: Run }) {
  const cost = run.totals["cost_usd"] ?? 0;
  return (
    <p aria-live="off" className="flex flex-wrap items-baseline gap-x-2 text-xs text-muted">
      <Link
        to="/runs/$id"
        params={{ id: String(run.id) }}
        className="rounded tabular-nums hover:text-ink hover:underline"
      >
        run {run.id}
      </Link>
      {run.started_at !== null && <RunDuration run={run} />}
      {cost > 0 && <span className="tabular-nums">{totalText("cost_usd", cost)}</span>}
      {run.attempt > 1 && <span>{counted(run.attempt, "attempt")}</span>}
      {run.finished_at !== null && <Time at={run.finished_at} seconds />}
    </p>
  );
}
