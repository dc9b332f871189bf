// The policies of the form, in groups: one line of explanation each, and what holds when a field is empty.

export type WorkKind = "shell" | "agent" | "http" | "function";
export type PolicyPath =
  | "overlap"
  | "catch_up"
  | "catch_up_window"
  | "catch_up_cap"
  | "retry.max"
  | "retry.base"
  | "retry.longest"
  | "timeout"
  | "max_age"
  | "break_after"
  | "lane"
  | "priority"
  | "session"
  | "checks"
  | "gate.command"
  | "gate.timeout"
  | "budget.per_run_usd"
  | "budget.per_day_usd"
  | "budget.per_day_runs"
  | "keep.age"
  | "keep.count"
  | "remaining"
  | "delete_after_run"
  | "on_lost_lease";
export type PolicyValues = Record<PolicyPath, string>;

export interface PolicyField {
  path: PolicyPath;
  label: string;
  explain: string;
  /** What holds when the field is empty, as it is shown. */
  standard: string;
  choices?: { value: string; label: string }[];
  /** An on/off switch: "true" or empty. */
  flag?: boolean;
  whole?: boolean;
}

export interface PolicyGroup {
  title: string;
  fields: PolicyField[];
}

export const POLICY_GROUPS: PolicyGroup[] = [
  {
    title: "When it is due",
    fields: [
      {
        path: "overlap",
        label: "Overlap",
        explain: "What happens when it is due and a run of it is still active.",
        standard: "skip",
        choices: [
          { value: "skip", label: "skip: leave this one out" },
          { value: "queue_one", label: "queue_one: one may wait" },
          { value: "queue_all", label: "queue_all: all wait their turn" },
          { value: "cancel_running", label: "cancel_running: the new one replaces it" },
          { value: "allow", label: "allow: run beside it" },
        ],
      },
      {
        path: "catch_up",
        label: "Catch-up",
        explain: "Which due times are run afterwards when no engine was there.",
        standard: "latest",
        choices: [
          { value: "none", label: "none: record them as missed" },
          { value: "latest", label: "latest: only the last one" },
          { value: "all", label: "all: every one, oldest first" },
        ],
      },
      { path: "catch_up_window", label: "Catch-up window", explain: "How far back catch-up looks.", standard: "24h" },
      {
        path: "catch_up_cap",
        label: "Catch-up cap",
        explain: "How many due times “all” runs at most.",
        standard: "1000",
        whole: true,
      },
      {
        path: "max_age",
        label: "Max age",
        explain: "A run that waited longer than this since it was due expires.",
        standard: "none",
      },
    ],
  },
  {
    title: "When it fails",
    fields: [
      {
        path: "retry.max",
        label: "Retry",
        explain: "How many more attempts a failed run gets.",
        standard: "3",
        whole: true,
      },
      {
        path: "retry.base",
        label: "First delay",
        explain: "Before the second attempt; it doubles each time.",
        standard: "2s",
      },
      {
        path: "retry.longest",
        label: "Longest delay",
        explain: "The delay between attempts grows up to this.",
        standard: "30s",
      },
      {
        path: "timeout",
        label: "Timeout",
        explain: "How long one attempt may take. “none” is no limit.",
        standard: "5m",
      },
      {
        path: "break_after",
        label: "Break after",
        explain: "So many failures in a row switch the schedule off.",
        standard: "3",
        whole: true,
      },
      {
        path: "on_lost_lease",
        label: "Lost lease",
        explain: "What a running attempt does when its node cannot renew its lease.",
        standard: "stop",
        choices: [
          { value: "stop", label: "stop: another node may start it anew" },
          { value: "continue", label: "continue: two attempts may overlap" },
        ],
      },
    ],
  },
  {
    title: "Where it waits",
    fields: [
      {
        path: "lane",
        label: "Lane",
        explain: "The pool that limits how many runs are under way at once.",
        standard: "cron",
      },
      { path: "priority", label: "Priority", explain: "Higher goes first in its lane.", standard: "0", whole: true },
      {
        path: "session",
        label: "Session",
        explain: "Runs with the same key go one after the other.",
        standard: "none",
      },
    ],
  },
  {
    title: "Before it runs",
    fields: [
      {
        path: "checks",
        label: "Checks",
        explain: "Names of tests that must pass, separated by commas.",
        standard: "none",
      },
      {
        path: "gate.command",
        label: "Gate",
        explain: "A command whose last line says, as JSON, whether there is anything to do. Only an admin may set it.",
        standard: "none",
      },
      { path: "gate.timeout", label: "Gate timeout", explain: "How long the gate may take.", standard: "30s" },
    ],
  },
  {
    title: "What it may cost",
    fields: [
      {
        path: "budget.per_run_usd",
        label: "Dollars a run",
        explain: "The most that one run may cost.",
        standard: "no limit",
      },
      {
        path: "budget.per_day_usd",
        label: "Dollars a day",
        explain: "Reaching it pauses the schedule until tomorrow.",
        standard: "no limit",
      },
      {
        path: "budget.per_day_runs",
        label: "Runs a day",
        explain: "The most that start in one day of its zone.",
        standard: "no limit",
        whole: true,
      },
    ],
  },
  {
    title: "What stays",
    fields: [
      {
        path: "keep.age",
        label: "Keep for",
        explain: "Ended runs are removed after this. “none” keeps them.",
        standard: "30d",
      },
      {
        path: "keep.count",
        label: "Keep at most",
        explain: "So many ended runs stay. “none” keeps them all.",
        standard: "1000",
      },
      {
        path: "remaining",
        label: "Runs left",
        explain: "Off after so many due times; 1 runs it once.",
        standard: "no limit",
        whole: true,
      },
      {
        path: "delete_after_run",
        label: "Delete after run",
        explain: "Remove the schedule when its last run has succeeded.",
        standard: "off",
        flag: true,
      },
    ],
  },
];

export const POLICY_FIELDS: PolicyField[] = POLICY_GROUPS.flatMap((group) => group.fields);
const TIMEOUTS: Record<WorkKind, string> = { shell: "5m", agent: "30m", http: "1m", function: "none" };

/** What holds when the field is empty; a timeout depends on the kind of work. */
export function standardOf(field: PolicyField, kind: WorkKind): string {
  return field.path === "timeout" ? TIMEOUTS[kind] : field.standard;
}

/** The timeout of this kind of work, as it is sent. */
export function standardTimeout(kind: WorkKind): string | null {
  return TIMEOUTS[kind] === "none" ? null : TIMEOUTS[kind];
}
