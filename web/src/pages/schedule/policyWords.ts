// Policies in words: one line each. What differs from the default comes first, and so do those that people ask about.

import { POLICIES } from "@/api/policies";
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

const shown = (count: number): string => count.toLocaleString("en-US");
const many = (count: number, noun: string): string => `${shown(count)} ${noun}${count === 1 ? "" : "s"}`;

function catchUp(policy: Policy): string {
  if (policy.catch_up === "none") return "Due times during downtime are recorded as missed.";
  const window = `within the last ${policy.catch_up_window}`;
  if (policy.catch_up === "latest") return `After downtime, the latest due time ${window} is run.`;
  return `After downtime, all due times ${window} are run, oldest first, at most ${shown(policy.catch_up_cap)}.`;
}

function retry({ max, base, longest, covers }: Policy["retry"]): string {
  if (max === 0) return "A failed run is not tried again.";
  const which = covers === "start" ? "A run that failed before its work began" : "A failed run";
  return `${which} is tried ${many(max, "more time")}, after delays from ${base} up to ${longest}.`;
}

function keep({ age, count }: Policy["keep"]): string {
  if (age === null && count === null) return "Ended runs are kept forever.";
  const parts = [
    age === null ? null : `for ${age}`,
    count === null ? null : `at most ${shown(count)} of them`,
  ];
  return `Ended runs are kept ${parts.filter(Boolean).join(", ")}.`;
}

function budget(given: Policy["budget"]): string {
  if (given === null) return "No budget.";
  const parts = [
    given.per_run_usd === null ? null : `$${given.per_run_usd} a run`,
    given.per_day_usd === null ? null : `$${given.per_day_usd} a day`,
    given.per_day_runs === null ? null : `${many(given.per_day_runs, "run")} a day`,
  ];
  return `At most ${parts.filter(Boolean).join(", ")}; then it pauses.`;
}

function gate(given: Policy["gate"]): string {
  if (given === null) return "No gate.";
  const command = typeof given.command === "string" ? given.command : given.command.join(" ");
  return `Before each run, ${command} decides whether there is anything to do (${given.timeout} at most).`;
}

/** Those that take more than their own value, or parts of it, to be told. */
const TOLD: Partial<Record<keyof Policy, (policy: Policy) => string>> = {
  catch_up: catchUp,
  retry: (policy) => retry(policy.retry),
  lane: ({ lane, priority }) =>
    `Its runs go through lane ${lane}${priority === 0 ? "" : ` with priority ${priority}`}.`,
  gate: (policy) => gate(policy.gate),
  budget: (policy) => budget(policy.budget),
  keep: (policy) => keep(policy.keep),
};
/** Those that are told with another one. */
const WITH: Partial<Record<keyof Policy, (keyof Policy)[]>> = {
  catch_up: ["catch_up_window", "catch_up_cap"],
  lane: ["priority"],
};
const ASKED: (keyof Policy)[] = ["overlap", "retry", "timeout"];

interface Told {
  name: keyof Policy;
  label: string;
  default: unknown;
  /** A sentence for some values, by their JSON, and one for all others. */
  says: Readonly<Record<string, string>>;
  kinds?: Partial<Record<Work["kind"], unknown>>;
}

const ROWS: readonly Told[] = POLICIES;

function sentence(row: Told, policy: Policy): string {
  const value = policy[row.name];
  const text = Array.isArray(value) ? value.join(", ") : typeof value === "number" ? shown(value) : String(value);
  return (
    TOLD[row.name]?.(policy) ?? row.says[JSON.stringify(value)] ?? row.says["else"]?.replace("{}", () => text) ?? text
  );
}

/** Every policy as a sentence. */
export function policyWords(policy: Policy, kind: Work["kind"]): PolicyWords {
  const isChanged = (row: Told) =>
    JSON.stringify(policy[row.name]) !== JSON.stringify(row.kinds?.[kind] ?? row.default);
  const together = Object.values(WITH).flat();
  const words: PolicyWords = { first: [], rest: [] };
  for (const row of ROWS.filter(({ name }) => !together.includes(name))) {
    const changed = isChanged(row) || ROWS.some((other) => WITH[row.name]?.includes(other.name) && isChanged(other));
    const line = { name: row.label, text: sentence(row, policy), changed };
    (changed || ASKED.includes(row.name) ? words.first : words.rest).push(line);
  }
  return words;
}
