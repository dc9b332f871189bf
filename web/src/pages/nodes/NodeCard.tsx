/** One node: its heartbeat, its slots, its services, its tasks. */

import { useState } from "react";
import { useMay } from "@/api/queries/me";
import { useDrainNode, useResumeNode } from "@/api/queries/nodes";
import type { Node, ServiceHealth } from "@/api/types";
import { Badge, type BadgeTone } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { Icon, type IconName } from "@/components/Icon";
import { Ago } from "@/components/Time";
import { useProblemToast, useToast } from "@/components/Toast";
import { counted } from "@/time/format";

const LOOK: Record<Node["state"], { tone: BadgeTone; icon: IconName; meaning: string }> = {
  alive: { tone: "good", icon: "check", meaning: "It is running and renews its lease." },
  draining: { tone: "warn", icon: "hourglass", meaning: "It takes no new work; active runs may end." },
  lost: { tone: "bad", icon: "unplug", meaning: "It stopped without notice. Other nodes take over what it was running, if anything." },
};

const FEW = 8;

/** A node that was asked to drain has a moment before it hears of it. */
const stateOf = (node: Node): Node["state"] => (node.draining && node.state === "alive" ? "draining" : node.state);

export function NodeCard({ node }: { node: Node }) {
  const state = stateOf(node);
  const look = LOOK[state];
  return (
    <Card
      title={<span className="font-mono break-all">{node.id}</span>}
      aside={
        <Badge tone={look.tone} icon={look.icon} title={look.meaning}>
          {state}
        </Badge>
      }
      actions={<DrainButton node={node} />}
    >
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
        <dt className="text-muted">Host</dt>
        <dd className="break-all">
          {node.host} <span className="text-xs text-muted">process {node.pid}</span>
        </dd>
        <dt className="text-muted">Heartbeat</dt>
        <dd className={node.state === "lost" ? "text-bad" : undefined}>
          <Ago at={node.seen_at} />
        </dd>
        <dt className="text-muted">Started</dt>
        <dd>
          <Ago at={node.started_at} />
        </dd>
        {node.state !== "lost" && (
          <>
            <dt className="text-muted">Slots</dt>
            <dd>
              <Slots node={node} />
            </dd>
          </>
        )}
        <dt className="text-muted">Services</dt>
        <dd>
          <Services services={node.services} />
        </dd>
        <dt className="text-muted">Tasks</dt>
        <dd>
          <Tasks tasks={node.tasks} />
        </dd>
      </dl>
    </Card>
  );
}

function DrainButton({ node }: { node: Node }) {
  const [asking, setAsking] = useState(false);
  const may = useMay("operator");
  const drain = useDrainNode();
  const resume = useResumeNode();
  const say = useToast();
  const problem = useProblemToast();
  if (node.state === "lost") return null;
  if (stateOf(node) === "draining") {
    const press = (): void =>
      resume.mutate({ id: node.id }, { onError: problem(`Node ${node.id} could not be resumed`) });
    return (
      <Button size="small" icon="play" why={may.reason} busy={resume.isPending} onClick={press}>
        Resume
      </Button>
    );
  }
  return (
    <>
      <Button size="small" icon="pause" why={may.reason} onClick={() => setAsking(true)}>
        Drain
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={`Drain node ${node.id}?`}
        text="It takes no new work, and its active runs may end. Its process stays; you can resume it here."
        action="Drain node"
        onConfirm={async () => {
          await drain.mutateAsync({ id: node.id });
          say({ title: `Node ${node.id} is draining` });
        }}
      />
    </>
  );
}

function Slots({ node }: { node: Node }) {
  const share = node.slots > 0 ? Math.min(1, node.running / node.slots) : 0;
  return (
    <span className="flex items-center gap-3">
      <span className="tabular-nums whitespace-nowrap">
        {node.running} of {node.slots} used
      </span>
      <span aria-hidden="true" className="h-1.5 max-w-40 flex-1 overflow-hidden rounded-full bg-line">
        <span className="block h-full rounded-full bg-(--state-running)" style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}

function Services({ services }: { services: Record<string, ServiceHealth> }) {
  const all = Object.entries(services);
  if (all.length === 0) return <span className="text-muted">none reported</span>;
  return (
    <ul className="flex flex-wrap gap-1.5">
      {all.map(([name, service]) => (
        <li key={name}>
          <Badge
            tone={!service.up ? "bad" : service.restarts > 0 ? "warn" : "good"}
            icon={service.up ? "check" : "cross"}
            title={service.error ?? undefined}
          >
            {name}
            {service.restarts > 0 && `, ${counted(service.restarts, "restart")}`}
          </Badge>
          {service.error !== null && <span className="ml-1.5 text-xs text-muted">{service.error}</span>}
        </li>
      ))}
    </ul>
  );
}

function Tasks({ tasks }: { tasks: string[] }) {
  const [all, setAll] = useState(false);
  if (tasks.length === 0) return <span className="text-muted">none registered</span>;
  const shown = all ? tasks : tasks.slice(0, FEW);
  return (
    <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
      {shown.map((task) => (
        <code key={task} className="font-mono text-xs break-all">
          {task}
        </code>
      ))}
      {tasks.length > FEW && (
        <button
          type="button"
          aria-expanded={all}
          onClick={() => setAll(!all)}
          className="inline-flex items-center gap-1 rounded text-xs text-accent hover:underline"
        >
          {all ? "fewer" : `${tasks.length - FEW} more`}
          <Icon name="chevronDown" size={12} className={all ? "rotate-180" : undefined} />
        </button>
      )}
    </span>
  );
}
