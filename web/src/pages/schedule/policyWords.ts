// Policies in words: one line each. What differs from the default comes first, and so do those that people ask about.

import type { Policy, Work } from "@/api/types";

export interface PolicyLine {
  name: string;
  text: string;
  /** It is not the default. */
  changed: boolean;
}

export interface PolicyWords {
  first: PolicyLine[];
  rest: PolicyLine[];
}

const TIMEOUTS: Record<Work["kind"], string | null> = {
  shell: "5m",
  agent: "30m",
  http: "1m",
  function: null,
  unreadable: null,
};
const OVERLAP: Record<Policy["overlap"], string> = {
  skip: "A due time is skipped while a run is still active.",
  queue_one: "While a run is active, one more may wait; others are skipped.",
  queue_all: "Due times wait for the active run and go one after the other.",
  cancel_running: "A new due time cancels the run that is active.",
  allow: "Runs may go on side by side.",
};

const many = (count: number, noun: string): string =>
  `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

function catchUp(policy: Policy): string {
  if (policy.catch_up === "none") return "Due times of a downtime are recorded as missed.";
  const window = `of the last ${policy.catch_up_window}`;
  if (policy.catch_up === "latest") return `After a downtime, the latest due time ${window} is run.`;
  return `After a downtime, all due times ${window} are run, oldest first, at most ${policy.catch_up_cap.toLocaleString("en-US")}.`;
}

function retry({ max, base, longest }: Policy["retry"]): string {
  if (max === 0) return "A failed run is not tried again.";
  return `A failed run is tried ${many(max, "more time")}, after ${base} at first and up to ${longest}.`;
}

function keep({ age, count }: Policy["keep"]): string {
  if (age === null && count === null) return "Ended runs stay for ever.";
  const parts = [
    age === null ? null : `for ${age}`,
    count === null ? null : `at most ${count.toLocaleString("en-US")} of them`,
  ];
  return `Ended runs stay ${parts.filter(Boolean).join(", ")}.`;
}

function budget(given: NonNullable<Policy["budget"]>): string {
  const parts = [
    given.per_run_usd === null ? null : `$${given.per_run_usd} a run`,
    given.per_day_usd === null ? null : `$${given.per_day_usd} a day`,
    given.per_day_runs === null ? null : `${many(given.per_day_runs, "run")} a day`,
  ];
  return `At most ${parts.filter(Boolean).join(", ")}; then it pauses.`;
}

/** Every policy as a sentence. */
export function policyWords(policy: Policy, kind: Work["kind"]): PolicyWords {
  const line = (name: string, text: string, changed: boolean): PolicyLine => ({ name, text, changed });
  const { max, base, longest, spread } = policy.retry;
  const lines = [
    line("Overlap", OVERLAP[policy.overlap], policy.overlap !== "skip"),
    line(
      "Catch-up",
      catchUp(policy),
      policy.catch_up !== "latest" || policy.catch_up_window !== "1d" || policy.catch_up_cap !== 1000,
    ),
    line("Retry", retry(policy.retry), max !== 3 || base !== "2s" || longest !== "30s" || spread !== 0.25),
    line(
      "Timeout",
      policy.timeout === null ? "An attempt may take as long as it likes." : `An attempt may take ${policy.timeout}.`,
      policy.timeout !== TIMEOUTS[kind],
    ),
    line(
      "Breaker",
      policy.break_after === 1
        ? "Any failure switches it off."
        : `${policy.break_after} failures in a row switch it off.`,
      policy.break_after !== 3,
    ),
    line(
      "Lost lease",
      policy.on_lost_lease === "stop"
        ? "A run is stopped when its node cannot renew its lease."
        : "A run goes on when its node cannot renew its lease, though another node may start it anew.",
      policy.on_lost_lease !== "stop",
    ),
    line(
      "Max age",
      policy.max_age === null ? "A run waits as long as it must." : `A run that waited ${policy.max_age} expires.`,
      policy.max_age !== null,
    ),
    line(
      "Lane",
      `Its runs go through lane ${policy.lane}${policy.priority === 0 ? "" : ` with priority ${policy.priority}`}.`,
      policy.lane !== "cron" || policy.priority !== 0,
    ),
    line(
      "Session",
      policy.session === null
        ? "Its runs share no session."
        : `Its runs go one after the other with all others of session ${policy.session}.`,
      policy.session !== null,
    ),
    line(
      "Checks",
      policy.checks.length === 0 ? "No checks." : `Before each run must pass: ${policy.checks.join(", ")}.`,
      policy.checks.length > 0,
    ),
    line(
      "Gate",
      policy.gate === null
        ? "No gate."
        : `Before each run, ${commandText(policy.gate.command)} says whether there is anything to do (${policy.gate.timeout} at most).`,
      policy.gate !== null,
    ),
    line("Budget", policy.budget === null ? "No budget." : budget(policy.budget), policy.budget !== null),
    line(
      "Notify",
      policy.notify.length === 0 ? "Nobody in particular is told." : `Told: ${policy.notify.join(", ")}.`,
      policy.notify.length > 0,
    ),
    line("Keep", keep(policy.keep), policy.keep.age !== "30d" || policy.keep.count !== 1000),
    line(
      "Runs left",
      policy.remaining === null
        ? "It runs as often as it is due."
        : policy.remaining === 1
          ? "It runs once."
          : `It runs ${many(policy.remaining, "time")}.`,
      policy.remaining !== null,
    ),
    line(
      "Afterwards",
      policy.delete_after_run ? "It is removed when its last run has succeeded." : "It stays when it has finished.",
      policy.delete_after_run,
    ),
  ];
  const asked = ["Overlap", "Retry", "Timeout"];
  const isFirst = (each: PolicyLine) => each.changed || asked.includes(each.name);
  return { first: lines.filter(isFirst), rest: lines.filter((each) => !isFirst(each)) };
}

function commandText(command: string | string[]): string {
  return typeof command === "string" ? command : command.join(" ");
}
