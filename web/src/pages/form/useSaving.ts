/** Saves the form: local checks, the request, and what the server says about it, placed at the fields. */

import { useRef, useState } from "react";
import { ProblemError } from "@/api/client";
import { useChannels } from "@/api/queries/channels";
import { type Seen, fetchSchedule, useChangeSchedule, useCreateSchedule } from "@/api/queries/schedules";
import type { FieldProblem, Schedule } from "@/api/types";
import { type FieldErrors, placeErrors } from "./fieldErrors";
import { type FormValues, changeRequest, newRequest } from "./formValues";
import { inLabels } from "./policyChecks";
import type { LocalErrors } from "./workTexts";
import { fieldOrder } from "./fieldOrder";

export interface Saving {
  errors: FieldErrors;
  /** Counts the answers that found something wrong. */
  answers: number;
  /** What belongs to no field. */
  problem: unknown;
  /** What is stored now, when somebody else saved first. */
  theirs: Schedule | null;
  /** What is stored as far as this form knows, as its values. */
  before: FormValues;
  busy: boolean;
  save: (values: FormValues) => Promise<Schedule | null>;
  saveOver: (values: FormValues) => Promise<Schedule | null>;
  clear: (field: string) => void;
  /** Somebody leaves a field: what can be seen to be wrong with it is told at once. */
  check: (field: string, values: FormValues) => void;
}

interface Given {
  schedule: Schedule | null;
  initial: FormValues;
  /** It is broken: saving also switches it on again, unless it is to be off. */
  fix: boolean;
}

const local = (errors: LocalErrors): FieldErrors =>
  Object.fromEntries(Object.entries(errors).map(([field, message]) => [field, { field, message }]));

const TAKEN: FieldProblem = {
  field: "name",
  message: "A schedule of this name already exists.",
  hint: "Choose another name, or edit that schedule.",
};

const inWords = (told: FieldProblem): FieldProblem => ({ ...told, message: inLabels(told.message) });

export function useSaving({ schedule, initial, fix }: Given): Saving {
  const create = useCreateSchedule();
  const change = useChangeSchedule(schedule?.name ?? "");
  const channels = useChannels().data?.items.map((channel) => channel.name);
  const [errors, setErrors] = useState<FieldErrors>({});
  const [answers, setAnswers] = useState(0);
  const [problem, setProblem] = useState<unknown>(null);
  const [theirs, setTheirs] = useState<Schedule | null>(null);
  /** The name that the server is asked for; none once it is typed on. */
  const asked = useRef<string | null>(null);

  function tell(found: FieldErrors): void {
    setErrors(found);
    if (Object.keys(found).length > 0) setAnswers((before) => before + 1);
  }
  function making(values: FormValues) {
    const { body, errors: wrong } = newRequest(values, channels);
    return { errors: wrong, store: () => create.mutateAsync(body) };
  }
  function changing(held: Schedule, values: FormValues, wanted: Seen | null) {
    const { body: changes, errors: wrong } = changeRequest(values, initial, channels);
    // In one request: what is refused to be switched on is not changed either.
    const body = fix ? { ...changes, enabled: values.enabled } : changes;
    const isEmpty = Object.keys(body).length === 0;
    return {
      errors: wrong,
      store: async () => (isEmpty ? held : change.mutateAsync({ changes: body, seen: wanted ?? undefined })),
    };
  }

  async function send(values: FormValues, wanted: Seen | null): Promise<Schedule | null> {
    setProblem(null);
    const { errors: wrong, store } = schedule === null ? making(values) : changing(schedule, values, wanted);
    tell(local(wrong));
    if (Object.keys(wrong).length > 0) return null;
    try {
      const saved = await store();
      setTheirs(null);
      return saved;
    } catch (error) {
      await refused(error, values);
      return null;
    }
  }

  async function refused(error: unknown, values: FormValues): Promise<void> {
    if (!(error instanceof ProblemError)) {
      setProblem(error);
    } else if (error.status === 412 && schedule === null) {
      tell({ name: TAKEN });
    } else if (error.status === 412 && schedule !== null) {
      await fetchSchedule(schedule.name).then(setTheirs, setProblem);
    } else {
      const failed = Object.entries(error.problem.checks ?? {}).map(([name, reason]) => `${name}: ${reason}`);
      const ofChecks = failed.length > 0 ? [{ field: "policy.checks", message: failed.join("; ") }] : [];
      const placed = placeErrors([...(error.problem.errors ?? []), ...ofChecks], fieldOrder(values.work));
      tell(Object.fromEntries(Object.entries(placed.fields).map(([name, told]) => [name, inWords(told)])));
      if (Object.keys(placed.fields).length === 0 || placed.others.length > 0 || failed.length > 0)
        setProblem(error);
    }
  }

  /** Digits may also be the id of a schedule that is called otherwise. */
  async function checkFree(name: string): Promise<void> {
    asked.current = name;
    const found = await fetchSchedule(name).catch(() => null);
    if (found?.name === name && asked.current === name) setErrors((before) => ({ ...before, name: TAKEN }));
  }

  return {
    errors,
    answers,
    problem,
    theirs,
    before: initial,
    busy: create.isPending || change.isPending,
    save: (values) => send(values, schedule),
    saveOver: (values) => send(values, theirs),
    clear: (field) => {
      if (field === "name") asked.current = null;
      if (!(field in errors)) return;
      const { [field]: _gone, ...rest } = errors;
      setErrors(rest);
    },
    check: (field, values) => {
      const { errors: wrong } =
        schedule === null ? newRequest(values, channels) : changeRequest(values, initial, channels);
      const message = wrong[field];
      if (message !== undefined) setErrors((before) => ({ ...before, [field]: { field, message } }));
      else if (field === "name" && schedule === null) void checkFree(values.name.trim());
    },
  };
}
