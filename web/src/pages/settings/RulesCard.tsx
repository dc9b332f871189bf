/** Rules: what a channel is told, of one project or of all. */

import { type FormEvent, useId, useState } from "react";
import { ProblemError } from "@/api/client";
import { useAddRule, useRemoveRule, useRules } from "@/api/queries/channels";
import { useMay } from "@/api/queries/me";
import { useProjects } from "@/api/queries/projects";
import type { NoticeKind, Rule } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Dialog } from "@/components/Dialog";
import { EmptyState } from "@/components/EmptyState";
import { TextField } from "@/components/Field";
import { IconButton } from "@/components/IconButton";
import { ProblemNote } from "@/components/ProblemNote";
import { QueryView } from "@/components/QueryView";
import { Select } from "@/components/Select";
import { useProblemToast } from "@/components/Toast";

const KINDS: readonly { kind: NoticeKind; label: string; usual: boolean }[] = [
  { kind: "failed", label: "failed, after the last attempt", usual: true },
  { kind: "broken", label: "broken: a schedule was switched off", usual: true },
  { kind: "recovered", label: "recovered", usual: true },
  { kind: "missed", label: "missed: due times that nobody ran", usual: true },
  { kind: "late", label: "late: it has not succeeded in time", usual: true },
  { kind: "succeeded", label: "succeeded", usual: false },
  { kind: "run", label: "run: every end of a run", usual: false },
];

export function RulesCard({ channels }: { channels: readonly string[] }) {
  const rules = useRules();
  const admin = useMay("admin");
  const [making, setMaking] = useState(false);
  const none = channels.length === 0 ? "Add a channel first." : undefined;
  return (
    <Card
      title="Rules"
      actions={
        <Button size="small" icon="plus" why={admin.reason ?? none} onClick={() => setMaking(true)}>
          New rule
        </Button>
      }
      flush
    >
      <QueryView query={rules}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState
              icon="list"
              title="No rules yet"
              text="A rule tells a channel what happens in a project, or everywhere. A schedule can also name its channels itself."
            />
          ) : (
            <ul aria-label="Rules" className="divide-y divide-line">
              {items.map((rule) => (
                <RuleRow key={rule.id} rule={rule} />
              ))}
            </ul>
          )
        }
      </QueryView>
      {making && <RuleDialog channels={channels} onClose={() => setMaking(false)} />}
    </Card>
  );
}

function RuleRow({ rule }: { rule: Rule }) {
  const admin = useMay("admin");
  const remove = useRemoveRule();
  const problem = useProblemToast();
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
      <span className="font-medium break-all">{rule.channel}</span>
      <span className="text-xs text-muted">{rule.project === null ? "everything" : `project ${rule.project}`}</span>
      <span className="flex min-w-0 flex-1 basis-48 flex-wrap gap-1">
        {rule.on.map((kind) => (
          <Badge key={kind}>{kind}</Badge>
        ))}
        {rule.digest !== null && (
          <Badge tone="info">
            digest {rule.digest} ({rule.zone})
          </Badge>
        )}
      </span>
      <IconButton
        icon="trash"
        label={`Remove rule ${rule.id} of ${rule.channel}`}
        tone="danger"
        why={admin.reason}
        busy={remove.isPending}
        onClick={() => remove.mutate({ id: rule.id }, { onError: problem("The rule could not be removed") })}
      />
    </li>
  );
}

function RuleDialog({ channels, onClose }: { channels: readonly string[]; onClose: () => void }) {
  const form = useId();
  const add = useAddRule();
  const projects = useProjects().data?.items ?? [];
  const [channel, setChannel] = useState(channels[0] ?? "");
  const [project, setProject] = useState("");
  const [digest, setDigest] = useState("");
  const [on, setOn] = useState<readonly NoticeKind[]>(KINDS.filter(({ usual }) => usual).map(({ kind }) => kind));
  const errors = add.error instanceof ProblemError ? add.error.fields : {};

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const wanted = {
      channel,
      ...(on.length > 0 ? { on: [...on] } : {}),
      ...(project === "" ? {} : { project }),
      ...(digest.trim() === "" ? {} : { digest: digest.trim() }),
    };
    add.mutate(wanted, { onSuccess: onClose });
  };
  const toggle = (kind: NoticeKind): void =>
    setOn(on.includes(kind) ? on.filter((each) => each !== kind) : [...on, kind]);

  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="New rule"
      description="It replaces the rule of the same channel and project."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            form={form}
            variant="primary"
            busy={add.isPending}
            why={on.length === 0 && digest.trim() === "" ? "Choose what it is told of, or give a digest." : undefined}
          >
            Add rule
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-4">
        {add.error !== null && errors["digest"] === undefined && <ProblemNote error={add.error} />}
        <Select label="Channel" options={channels} value={channel} onChange={setChannel} />
        <Select
          label="Of"
          options={[{ value: "", label: "everything" }, ...projects.map(({ name }) => name)]}
          value={project}
          onChange={setProject}
        />
        <fieldset className="flex flex-col gap-1.5">
          <legend className="mb-1 text-sm font-medium">Told of</legend>
          {KINDS.map(({ kind, label }) => (
            <label key={kind} className="flex items-center gap-2 text-sm">
              <input
                type="checkbox"
                checked={on.includes(kind)}
                onChange={() => toggle(kind)}
                className="size-4 accent-accent"
              />
              {label}
            </label>
          ))}
        </fieldset>
        <TextField
          label="Digest"
          hint="A summary of all runs at these times, such as daily 08:00."
          error={errors["digest"]}
          value={digest}
          onChange={(event) => setDigest(event.target.value)}
        />
      </form>
    </Dialog>
  );
}
