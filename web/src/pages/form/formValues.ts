// What the form holds, as texts; from a schedule to these and from these to a request.

import type { Kind, NewSchedule, Schedule, ScheduleChanges } from "@/api/types";
import { type Channels, policyProblems } from "./policyChecks";
import { NO_POLICY, policyRequest, policyValues, standardTimeout } from "./policyFields";
import type { PolicyValues } from "./policyGroups";
import { workProblems } from "./workChecks";
import type { LocalErrors } from "./workTexts";
import { NEW_WORK, type WorkValues, workRequest, workValues } from "./workValues";

export interface FormValues {
  name: string;
  timing: string;
  zone: string;
  project: string;
  note: string;
  enabled: boolean;
  work: WorkValues;
  policy: PolicyValues;
}

export const NEW_VALUES: FormValues = {
  name: "",
  timing: "",
  zone: "",
  project: "",
  note: "",
  enabled: true,
  work: NEW_WORK,
  policy: NO_POLICY,
};

/** `kinds` has the description of the work, if a package adds it. */
export function valuesOf(schedule: Schedule, kinds: readonly Kind[] = []): FormValues {
  const work = workValues(schedule.work, kinds);
  return {
    name: schedule.name,
    timing: schedule.timing,
    zone: schedule.zone,
    project: schedule.project ?? "",
    note: schedule.note ?? "",
    enabled: schedule.enabled,
    work,
    policy: policyValues(schedule.policy, work),
  };
}

/** The descriptions that a form holds. */
export function kindsOf(...values: FormValues[]): Kind[] {
  return values.flatMap(({ work }) => (work.added === null ? [] : [work.added]));
}

const LONGEST_NAME = 200;
/** Controls, invisible marks and spaces of other kinds than the usual one. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;

/** Why a schedule cannot be called so; null when it can. */
function nameProblem(name: string): string | null {
  if (name === "") return "Enter a name, such as backup.";
  if (name === "." || name === "..") return "This means another place in an address. Enter a name, such as backup.";
  if ([...name].length > LONGEST_NAME) return `A name has at most ${LONGEST_NAME} characters.`;
  return UNPRINTABLE.test(name) ? "This has characters that cannot be seen. Type it anew." : null;
}

/** The request for a new schedule, and what can be seen to be wrong without asking the server. */
export function newRequest(values: FormValues, channels?: Channels): { body: NewSchedule; errors: LocalErrors } {
  const errors: LocalErrors = { ...workProblems(values.work), ...policyProblems(values.policy, NO_POLICY, channels) };
  const policy = policyRequest(values.policy, NO_POLICY, values.work);
  const body: NewSchedule = {
    name: values.name.trim(),
    timing: values.timing.trim(),
    work: workRequest(values.work, errors),
    ...(values.zone !== "" && { zone: values.zone }),
    ...(Object.keys(policy).length > 0 && { policy }),
    ...(values.project !== "" && { project: values.project }),
    ...(values.note.trim() !== "" && { note: values.note.trim() }),
    ...(!values.enabled && { enabled: false }),
  };
  const unnamable = nameProblem(body.name);
  if (unnamable !== null) errors["name"] = unnamable;
  if (body.timing === "") errors["timing"] = "Say when, such as every 5m.";
  return { body, errors };
}

/** Only what was changed, so that an edit does not undo somebody else's of another field. */
export function changeRequest(
  values: FormValues,
  before: FormValues,
  channels?: Channels,
): { body: ScheduleChanges; errors: LocalErrors } {
  const errors: LocalErrors = policyProblems(values.policy, before.policy, channels);
  const body: ScheduleChanges = {};
  if (values.timing.trim() !== before.timing) body.timing = values.timing.trim();
  if (values.zone !== before.zone) body.zone = values.zone;
  if (values.project !== before.project) body.project = values.project === "" ? null : values.project;
  if (values.note.trim() !== before.note) body.note = values.note.trim() === "" ? null : values.note.trim();
  if (values.enabled !== before.enabled) body.enabled = values.enabled;
  if (JSON.stringify(values.work) !== JSON.stringify(before.work)) {
    Object.assign(errors, workProblems(values.work));
    body.work = workRequest(values.work, errors);
  }
  const policy = policyRequest(values.policy, before.policy, values.work);
  // The stored timeout is that of the old kind of work; a new kind begins with its own.
  if (values.work.kind !== before.work.kind && values.policy.timeout.trim() === "") {
    policy.timeout = standardTimeout(values.work);
  }
  if (Object.keys(policy).length > 0) body.policy = policy;
  if (body.timing === "") errors["timing"] = "Say when, such as every 5m.";
  return { body, errors };
}

export function isDirty(values: FormValues, before: FormValues): boolean {
  return JSON.stringify(values) !== JSON.stringify(before);
}
