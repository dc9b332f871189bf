// The fields of the form from top to bottom, by the names that the server gives them.

import { POLICY_FIELDS } from "./policyGroups";
import type { WorkValues } from "./workValues";

const SURROUNDINGS = ["folder", "env"];
const WORK: Record<string, string[]> = {
  shell: ["command", "interpreter", "user", "nice", "memory", "cpu", ...SURROUNDINGS],
  agent: [
    "prompt",
    "context",
    "cli",
    "model",
    "permission_mode",
    "allowed_tools",
    "mcp_config",
    "system",
    ...SURROUNDINGS,
  ],
  http: ["method", "url", "body", "headers", "expect"],
  function: ["task", "args", "kwargs"],
  check_in: ["late_after"],
};

/** Only those that are there for this kind of work: an error at a hidden field would not be seen. */
export function fieldOrder(work: Pick<WorkValues, "kind" | "added">): string[] {
  const names = work.added === null ? (WORK[work.kind] ?? []) : work.added.fields.map((field) => field.name);
  return [
    "name",
    "project",
    "note",
    "timing",
    "zone",
    ...names.map((name) => `work.${name}`),
    ...POLICY_FIELDS.map((field) => `policy.${field.path}`),
  ];
}
