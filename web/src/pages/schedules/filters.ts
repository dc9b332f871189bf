// The filters of the list, as they stand in the URL: what is the default is left out.

import type { ScheduleFilter } from "@/api/queries/schedules";
import { PAGE_ROWS } from "./pages";

export const STATES = ["on", "off", "running", "failing", "broken", "paused", "finished", "orphaned"] as const;
export const SORTS = [
  { value: "next", label: "Next due" },
  { value: "name", label: "Name" },
  { value: "-last", label: "Last run" },
  { value: "-failed", label: "Last failure" },
  { value: "-created", label: "Newest" },
] as const;

export interface Filters {
  project: string;
  state: string;
  owner: string;
  q: string;
  sort: string;
}

const DEFAULTS: Filters = { project: "", state: "", owner: "", q: "", sort: "next" };
const NAMES = ["project", "state", "owner", "q", "sort"] as const;

export function filtersOf(search: Record<string, string | undefined>): Filters {
  const filters = { ...DEFAULTS };
  for (const name of NAMES) filters[name] = search[name] ?? DEFAULTS[name];
  // Somebody may have typed the URL: an unknown word would only be refused by the server.
  if (!STATES.some((state) => state === filters.state)) filters.state = "";
  if (!/^-?(next|name|last|failed|created)$/.test(filters.sort)) filters.sort = DEFAULTS.sort;
  return filters;
}

/** The changes to the URL for these filters; undefined takes a name out. */
export function searchOf(filters: Partial<Filters>): Record<string, string | undefined> {
  const search: Record<string, string | undefined> = {};
  for (const name of NAMES) {
    const value = filters[name];
    if (value !== undefined) search[name] = value === DEFAULTS[name] ? undefined : value;
  }
  return search;
}

export function queryOf(filters: Filters): ScheduleFilter {
  const { project, state, owner, q, sort } = filters;
  const given = Object.entries({ project, state, owner, q: q.trim() }).filter(([, value]) => value !== "");
  return { ...Object.fromEntries(given), sort, recent: 60, limit: PAGE_ROWS };
}

export function isFiltered(filters: Filters): boolean {
  return NAMES.some((name) => name !== "sort" && filters[name].trim() !== "");
}

/** A click on a column's head: first its own direction, then the other. */
export function sortAfterClick(sort: string, column: "name" | "last" | "next"): string {
  const first = column === "last" ? "-last" : column;
  return sort === first ? (first.startsWith("-") ? first.slice(1) : `-${first}`) : first;
}
