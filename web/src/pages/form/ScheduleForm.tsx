/** The form of a new or an existing schedule. */

import { useNavigate } from "@tanstack/react-router";
import { type FocusEvent, type FormEvent, useEffect, useRef, useState } from "react";
import { useMay } from "@/api/queries/me";
import { useProjects } from "@/api/queries/projects";
import type { Kind, Schedule } from "@/api/types";
import { Banner } from "@/components/Banner";
import { Card } from "@/components/Card";
import { TextField } from "@/components/Field";
import { PageHeader } from "@/components/PageHeader";
import { ProblemNote } from "@/components/ProblemNote";
import { Select } from "@/components/Select";
import { useToast } from "@/components/Toast";
import { ConflictNote } from "./ConflictNote";
import { FixBanner } from "./FixBanner";
import { PolicySection } from "./PolicySection";
import { SaveBar } from "./SaveBar";
import { TimingSection } from "./TimingSection";
import { WorkSection } from "./WorkSection";
import { firstField } from "./fieldErrors";
import { fieldOrder } from "./fieldOrder";
import { type FormValues, isDirty } from "./formValues";
import { useLeaveGuard } from "./useLeaveGuard";
import { useSaving } from "./useSaving";

interface Props {
  /** The one that is edited; null for a new one. */
  schedule: Schedule | null;
  initial: FormValues;
  /** The kinds of work that packages add. */
  kinds: readonly Kind[];
  /** It is broken, and saving switches it on again. */
  fix?: boolean;
  /** Begins anew with what somebody else has saved. */
  onReload?: (theirs: Schedule) => void;
}

export function ScheduleForm({ schedule, initial, kinds, fix = false, onReload }: Props) {
  const [values, setValues] = useState(initial);
  const saving = useSaving({ schedule, initial, fix });
  const dirty = isDirty(values, saving.before);
  const guard = useLeaveGuard(dirty);
  const form = useRef<HTMLFormElement>(null);
  const navigate = useNavigate();
  const say = useToast();
  const why = useWhyNot(values, saving.before, schedule);

  // An answer moves the focus to the first field that was not taken; mending one of them must not.
  const wrong = useRef<string | null>(null);
  wrong.current = firstField(saving.errors, fieldOrder(values.work));
  useEffect(() => {
    const field = wrong.current;
    if (field === null) return;
    const control = form.current?.querySelector<HTMLElement>(`[name="${CSS.escape(field)}"]`);
    control?.closest("details")?.setAttribute("open", "");
    control?.focus();
  }, [saving.answers]);

  function change(changes: Partial<FormValues>): void {
    setValues((before) => ({ ...before, ...changes }));
    for (const field of Object.keys(changes)) saving.clear(field);
  }
  /** A field that is left is checked. One that is empty is not: it may be what comes next. */
  function check({ target }: FocusEvent<HTMLFormElement, HTMLElement>): void {
    if ("name" in target && "value" in target && String(target.value).trim() !== "") saving.check(String(target.name), values);
  }
  function leave(saved: Schedule): void {
    guard.allow();
    if (saved.enabled && saved.broken !== null)
      say({ title: `${saved.name} is saved, but it cannot run`, text: saved.broken, tone: "bad" });
    else say({
      title:
        schedule === null
          ? `${saved.name} is scheduled`
          : fix && values.enabled
            ? `${saved.name} is saved and on again`
            : `${saved.name} is saved`,
    });
    void navigate({ to: "/schedules/$name", params: { name: saved.name } });
  }
  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    if (why !== undefined || saving.busy) return;
    const saved = await saving.save(values);
    if (saved !== null) leave(saved);
  }
  async function saveOver(): Promise<void> {
    const saved = await saving.saveOver(values);
    if (saved !== null) leave(saved);
  }

  const { errors } = saving;
  const title = schedule === null ? "New schedule" : `Edit ${schedule.name}`;
  return (
    <form ref={form} onSubmit={(event) => void submit(event)} onBlur={check} noValidate>
      <PageHeader
        title={title}
        crumbs={[
          { label: "Schedules", to: "/schedules" },
          ...(schedule === null
            ? []
            : [{ label: schedule.name, to: `/schedules/${encodeURIComponent(schedule.name)}` }]),
        ]}
      />
      <div className="flex max-w-5xl flex-col gap-4 pb-20">
        {fix && schedule !== null && <FixBanner schedule={schedule} />}
        {schedule?.owner === "code" && (
          <Banner title="The code declares this schedule">
            What you change stays until the code changes that field. The schedule’s page shows it, with a way back.
          </Banner>
        )}
        <Card>
          <div className="grid gap-3 sm:grid-cols-2">
            {schedule === null && (
              <TextField
                label="Name"
                name="name"
                autoFocus
                autoComplete="off"
                spellCheck={false}
                placeholder="backup"
                value={values.name}
                error={errors["name"]}
                onChange={(event) => change({ name: event.target.value })}
              />
            )}
            <ProjectSelect
              value={values.project}
              error={errors["project"]?.message}
              onChange={(project) => change({ project })}
            />
            <TextField
              label="Note (optional)"
              name="note"
              value={values.note}
              error={errors["note"]}
              onChange={(event) => change({ note: event.target.value })}
              className={schedule === null ? "sm:col-span-2" : undefined}
            />
          </div>
        </Card>
        <Card title="When">
          <TimingSection
            text={values.timing}
            zone={values.zone}
            name={values.name}
            enabled={values.enabled}
            onChange={change}
            errors={{ timing: errors["timing"], zone: errors["zone"] }}
          />
        </Card>
        <Card title="Work">
          <WorkSection
            work={values.work}
            kinds={kinds}
            errors={errors}
            onChange={(changes) => {
              change({ work: { ...values.work, ...changes } });
              for (const name of Object.keys(changes.texts ?? changes)) saving.clear(`work.${name}`);
            }}
          />
        </Card>
        <Card title="Policies" aside="empty fields have their default">
          <div className="-my-3">
            <PolicySection
              values={values.policy}
              kind={values.work}
              errors={errors}
              onChange={(path, value) => {
                change({ policy: { ...values.policy, [path]: value } });
                saving.clear(`policy.${path}`);
              }}
            />
          </div>
        </Card>
      </div>
      <SaveBar
        action={schedule === null ? "Create schedule" : fix && values.enabled ? "Save and re-enable" : "Save"}
        why={why}
        busy={saving.busy}
        dirty={dirty}
        onCancel={() =>
          schedule === null
            ? void navigate({ to: "/schedules" })
            : void navigate({ to: "/schedules/$name", params: { name: schedule.name } })
        }
      >
        {saving.theirs !== null && (
          <ConflictNote
            before={saving.before}
            values={values}
            theirs={saving.theirs}
            busy={saving.busy}
            onLoad={() => saving.theirs !== null && onReload?.(saving.theirs)}
            onSaveOver={() => void saveOver()}
          />
        )}
        {saving.problem !== null && <ProblemNote error={saving.problem} />}
      </SaveBar>
      {guard.dialog}
    </form>
  );
}

/** Why it cannot be saved by whoever is logged in: shell and agent work, that of some packages, and gates, are for admins. */
function useWhyNot(values: FormValues, before: FormValues, schedule: Schedule | null): string | undefined {
  const operator = useMay("operator");
  const admin = useMay("admin");
  const works = [values.work, ...(schedule === null ? [] : [before.work])];
  const strong = works.some(({ kind, added }) => added?.needs_admin ?? (kind === "shell" || kind === "agent"));
  const touched = schedule === null || JSON.stringify(values.work) !== JSON.stringify(before.work);
  const gate = values.policy["gate.command"] !== before.policy["gate.command"];
  if (operator.reason !== undefined) return operator.reason;
  return (strong && touched) || gate ? admin.reason : undefined;
}

function ProjectSelect({
  value,
  error,
  onChange,
}: {
  value: string;
  error?: string;
  onChange: (project: string) => void;
}) {
  const projects = useProjects().data?.items ?? [];
  const names = [...new Set([...projects.map((project) => project.name), value].filter(Boolean))];
  const hint = projects.find((project) => project.name === value)?.folder;
  return (
    <Select
      label="Project"
      name="project"
      value={value}
      error={error}
      hint={hint}
      onChange={onChange}
      options={[{ value: "", label: "No project" }, ...names]}
    />
  );
}
