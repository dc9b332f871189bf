// The filters of the list of runs: in the address as text, and as the query that the server is asked.

import type { RunFilter } from "@/api/queries/runs";
import type { Trigger } from "@/api/types";
import { STATES } from "@/components/stateLook";
import { CAUSES } from "./causes";

export const RUN_FILTERS = [
  "q",
  "state",
  "cause",
  "schedule",
  "task",
  "project",
  "lane",
  "trigger",
  "session",
  "since",
] as const;
export type RunFilters = Record<(typeof RUN_FILTERS)[number], string>;

export const TRIGGERS: readonly { value: Trigger; label: string }[] = [
  { value: "schedule", label: "schedule" },
  { value: "manual", label: "manual" },
  { value: "catch_up", label: "catch-up" },
  { value: "api", label: "api" },
  { value: "message", label: "message" },
  { value: "check_in", label: "check-in" },
  { value: "after", label: "after another" },
];

export const NO_FILTERS = Object.fromEntries(RUN_FILTERS.map((name) => [name, ""])) as RunFilters;

export function filtersOf(search: Record<string, string>): RunFilters {
  return Object.fromEntries(RUN_FILTERS.map((name) => [name, search[name] ?? ""])) as RunFilters;
}

export const isFiltered = (filters: RunFilters): boolean => RUN_FILTERS.some((name) => filters[name] !== "");

/** `state` may be several, `failed,expired`. A word that is no state, cause or trigger is left out. */
export function queryOf(filters: RunFilters): RunFilter {
  const { state, cause, trigger, ...names } = filters;
  const states = state.split(",");
  const query: RunFilter = { limit: 50 };
  const wanted = STATES.filter((each) => states.includes(each));
  if (wanted.length > 0) query.state = wanted;
  const why = CAUSES.filter((each) => each === cause);
  if (why.length > 0) query.cause = why;
  const known = TRIGGERS.find((each) => each.value === trigger);
  if (known !== undefined) query.trigger = known.value;
  for (const name of ["q", "schedule", "task", "project", "lane", "session", "since"] as const) {
    if (names[name] !== "") query[name] = names[name];
  }
  return query;
}
