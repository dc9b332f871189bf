/** One incident; opened, it shows what was told to whom, and what can be done. */

import { Link } from "@tanstack/react-router";
import { useId, useState } from "react";
import { useIncident, useRerunIncident } from "@/api/queries/incidents";
import { useMay } from "@/api/queries/me";
import type { Incident, IncidentDetail } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { Icon } from "@/components/Icon";
import { QueryView } from "@/components/QueryView";
import { StateBadge } from "@/components/StateBadge";
import { Ago, Time } from "@/components/Time";
import { useToast } from "@/components/Toast";
import { AckDialog } from "@/pages/incidents/AckDialog";
import { Told } from "@/pages/incidents/Told";

export function IncidentRow({ incident }: { incident: Incident }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
        className="flex w-full flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 text-left text-sm hover:bg-sunken focus-visible:-outline-offset-2"
      >
        <Icon name={open ? "chevronDown" : "chevronRight"} size={13} className="text-muted" />
        <State incident={incident} />
        <span className="font-medium break-all">{incident.subject}</span>
        <Badge>{incident.cause}</Badge>
        <span className="min-w-0 flex-1 basis-48 truncate text-xs text-muted">{incident.reason}</span>
        <span className="text-xs text-muted tabular-nums">{times(incident.count)}</span>
        <span className="text-xs text-muted">
          <Ago at={incident.closed_at ?? incident.last_at} />
        </span>
      </button>
      {open && (
        <div id={id} className="border-t border-line bg-sunken/50 px-4 py-3">
          <Opened incident={incident} />
        </div>
      )}
    </li>
  );
}

const times = (count: number): string => (count === 1 ? "once" : `${count.toLocaleString("en-US")} times`);

function State({ incident }: { incident: Incident }) {
  if (incident.state === "closed") return <Badge tone="good">closed</Badge>;
  if (incident.acked_at !== null) return <Badge tone="warn">acknowledged</Badge>;
  return <Badge tone="bad">open</Badge>;
}

function Opened({ incident }: { incident: Incident }) {
  const detail = useIncident(incident.id);
  return <QueryView query={detail}>{(found) => <Detail incident={found} />}</QueryView>;
}

function Detail({ incident }: { incident: IncidentDetail }) {
  return (
    <div className="flex flex-col gap-3 text-sm">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-1">
        <dt className="text-muted">Opened</dt>
        <dd>
          <Time at={incident.opened_at} seconds />
          {incident.reopened > 0 && <span className="text-muted">, came back {times(incident.reopened)}</span>}
        </dd>
        <dt className="text-muted">Last</dt>
        <dd>
          <Time at={incident.last_at} seconds />
          {incident.last_run !== null && (
            <>
              {" in "}
              <Link to="/runs/$id" params={{ id: String(incident.last_run) }} className="text-accent hover:underline">
                run {incident.last_run}
              </Link>
            </>
          )}
        </dd>
        {incident.closed_at !== null && (
          <>
            <dt className="text-muted">Closed</dt>
            <dd>
              <Time at={incident.closed_at} seconds /> <span className="text-muted">{incident.closed_reason}</span>
            </dd>
          </>
        )}
        {incident.acked_at !== null && (
          <>
            <dt className="text-muted">Acknowledged</dt>
            <dd>
              by {incident.acked_by}, <Ago at={incident.acked_at} />
            </dd>
          </>
        )}
        {incident.note !== null && (
          <>
            <dt className="text-muted">Note</dt>
            <dd className="break-words">{incident.note}</dd>
          </>
        )}
        {incident.reruns.length > 0 && (
          <>
            <dt className="text-muted">Run again</dt>
            <dd className="flex flex-wrap gap-x-3 gap-y-1">
              {incident.reruns.map(({ run, of, state, reason }) => (
                <span key={run} className="flex items-center gap-1">
                  run {of} as
                  <Link to="/runs/$id" params={{ id: String(run) }} className="text-accent hover:underline">
                    run {run}
                  </Link>
                  <StateBadge state={state} reason={reason} />
                </span>
              ))}
            </dd>
          </>
        )}
        {incident.reason !== null && (
          <>
            <dt className="text-muted">Reason</dt>
            <dd className="max-h-60 overflow-y-auto">{incident.reason}</dd>
          </>
        )}
      </dl>
      <Told deliveries={incident.deliveries} />
      <Actions incident={incident} />
    </div>
  );
}

function Actions({ incident }: { incident: IncidentDetail }) {
  const may = useMay("operator");
  const [acking, setAcking] = useState(false);
  const [running, setRunning] = useState(false);
  const rerun = useRerunIncident();
  const say = useToast();
  const count = incident.runs.length;
  const runs = count === 1 ? "1 failed run" : `${count.toLocaleString("en-US")} failed runs`;
  return (
    <div className="flex flex-wrap gap-2">
      {incident.state === "open" && (
        <Button size="small" icon="check" why={may.reason} onClick={() => setAcking(true)}>
          Acknowledge
        </Button>
      )}
      {count > 0 && (
        <Button size="small" icon="refresh" why={may.reason} onClick={() => setRunning(true)}>
          Run again
        </Button>
      )}
      {incident.schedule !== null && (
        <Link
          to="/schedules/$name"
          params={{ name: incident.schedule }}
          className="self-center text-xs text-accent hover:underline"
        >
          Schedule {incident.schedule}
        </Link>
      )}
      <AckDialog id={incident.id} subject={incident.subject} open={acking} onOpenChange={setAcking} />
      <ConfirmDialog
        open={running}
        onOpenChange={setRunning}
        title={`Run ${runs} again?`}
        text="Each becomes a new run, queued now; the old rows stay as they are."
        action="Run again"
        onConfirm={async () => {
          const made = await rerun.mutateAsync({ id: incident.id });
          say({ title: made.runs.length === 1 ? "1 run is queued" : `${made.runs.length} runs are queued` });
        }}
      />
    </div>
  );
}
