// The fields of the form from top to bottom, by the names that the server gives them.

import { POLICY_FIELDS, type WorkKind } from "./policyGroups";

const SURROUNDINGS = ["folder", "env"];
const WORK: Record<WorkKind, string[]> = {
  shell: ["command", "user", "nice", "memory", "cpu", ...SURROUNDINGS],
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
};

/** Only those that are there for this kind of work: an error at a hidden field would not be seen. */
export function fieldOrder(kind: WorkKind): string[] {
  return [
    "name",
    "project",
    "note",
    "timing",
    "zone",
    ...WORK[kind].map((name) => `work.${name}`),
    ...POLICY_FIELDS.map((field) => `policy.${field.path}`),
  ];
}
