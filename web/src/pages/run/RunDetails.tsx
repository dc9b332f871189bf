import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Run } from "@/api/types";
import { Time } from "@/components/Time";
import { causeText } from "@/pages/runs/causes";

const TRIGGERS: Record<Run["trigger"], string> = {
  schedule: "its schedule",
  manual: "a person",
  catch_up: "catch-up after downtime",
  api: "a request",
  message: "a message",
  check_in: "a machine that checked in",
  after: "the end of another schedule's run",
};

/** Who, where that is known; and by what. */
function startedBy({ trigger, started_by: who }: Run): string {
  const what = TRIGGERS[trigger] ?? trigger;
  if (who === null) return trigger === "manual" ? "a person or a program" : what;
  return trigger === "manual" ? who : `${who}, by ${what}`;
}

/** The rest of the row, in words. */
export function RunDetails({ run }: { run: Run }) {
  const facts: [string, ReactNode][] = [
    ["Cause", run.cause === null ? null : causeText(run.cause)],
    ["Started by", startedBy(run)],
    ["Cancelled by", run.cancelled_by],
    ["Due", <Time key="due" at={run.due_at} zone={run.zone} seconds />],
    ["Last due", run.last_due_at === null ? null : <Time key="last" at={run.last_due_at} zone={run.zone} seconds />],
    ["Due times", run.count > 1 ? run.count.toLocaleString("en-US") : null],
    ["Ready", run.ready_at === run.due_at ? null : <Time key="ready" at={run.ready_at} zone={run.zone} seconds />],
    ["Started", <Time key="started" at={run.started_at} zone={run.zone} seconds />],
    ["Finished", <Time key="finished" at={run.finished_at} zone={run.zone} seconds />],
    ["Task", run.task],
    ["Project", run.project],
    [
      "Lane",
      <Link key="lane" to="/lanes" className="hover:underline">
        {run.lane}
      </Link>,
    ],
    ["Priority", run.priority === 0 ? null : run.priority],
    [
      "Session",
      run.session === null ? null : (
        <Link key="session" to="/sessions/$key" params={{ key: run.session }} className="hover:underline">
          {run.session}
        </Link>
      ),
    ],
    [
      "Node",
      run.node === null ? null : (
        <Link key="node" to="/nodes" className="font-mono text-xs hover:underline">
          {run.node}
        </Link>
      ),
    ],
    [
      "Key",
      <span key="key" className="font-mono text-xs">
        {run.key}
      </span>,
    ],
  ];
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
      {facts
        .filter(([, value]) => value !== null && value !== "")
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="min-w-0 break-words">{value}</dd>
          </div>
        ))}
    </dl>
  );
}
