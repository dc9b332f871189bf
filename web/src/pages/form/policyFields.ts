// From a stored policy to the texts of the form, and back to what is sent.

import type { NewPolicy, Policy } from "@/api/types";
import {
  POLICY_FIELDS,
  type PolicyField,
  type PolicyPath,
  type PolicyValues,
  type WorkKind,
  standardOf,
} from "./policyGroups";

export const NO_POLICY: PolicyValues = Object.fromEntries(
  POLICY_FIELDS.map((field) => [field.path, ""]),
) as PolicyValues;

function textAt(policy: Policy, path: PolicyPath): string {
  let value: unknown = policy;
  for (const name of path.split("."))
    value = value !== null && typeof value === "object" ? (value as Record<string, unknown>)[name] : null;
  if (value === null || value === undefined) return path.startsWith("keep.") || path === "timeout" ? "none" : "";
  if (typeof value === "boolean") return value ? "true" : "";
  if (path === "gate.command" && Array.isArray(value)) return JSON.stringify(value);
  return Array.isArray(value) ? value.join(", ") : String(value as string | number);
}

const same = (text: string, standard: string): boolean => text === standard || (text === "1d" && standard === "24h");

/** A stored policy as the form shows it: what is the default stays empty. */
export function policyValues(policy: Policy, kind: WorkKind): PolicyValues {
  const values = { ...NO_POLICY };
  for (const field of POLICY_FIELDS) {
    const text = textAt(policy, field.path);
    if (!same(text, standardOf(field, kind))) values[field.path] = text;
  }
  if (policy.gate === null) values["gate.timeout"] = "";
  return values;
}

/** What is sent for a text; the server says what is wrong with it. */
function parsed(field: PolicyField, text: string, kind: WorkKind): unknown {
  const given = text.trim() === "" ? standardOf(field, kind) : text.trim();
  if (field.flag === true) return given === "true";
  if (given === "none" || given === "no limit")
    return field.path === "checks" ? [] : field.path === "catch_up" ? given : null;
  if (field.path === "checks")
    return given
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean);
  const isNumber = field.whole === true || field.path === "keep.count" || field.path.startsWith("budget.");
  if (isNumber && /^-?\d+(\.\d+)?$/.test(given)) return Number(given);
  return field.path === "gate.command" ? commandOf(given) : given;
}

/** A JSON list of texts is a command without a shell; everything else goes through one. */
export function commandOf(text: string): string | string[] {
  if (!text.trimStart().startsWith("[")) return text;
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list) && list.length > 0 && list.every((item): item is string => typeof item === "string"))
      return list;
  } catch {
    // `[ -f x ] && y` is shell and not JSON.
  }
  return text;
}

/** Only what differs from `before`; an emptied field goes back to its default. */
export function policyRequest(values: PolicyValues, before: PolicyValues, kind: WorkKind): NewPolicy {
  const request: Record<string, unknown> = {};
  const changed = (path: PolicyPath) => values[path].trim() !== before[path].trim();
  for (const field of POLICY_FIELDS) {
    const [group = "", name] = field.path.split(".");
    if (group === "gate" || group === "budget" || !changed(field.path)) continue;
    const value = parsed(field, values[field.path], kind);
    if (name === undefined) request[group] = value;
    else request[group] = { ...(request[group] as object | undefined), [name]: value };
  }
  for (const group of ["gate", "budget"] as const) {
    const fields = POLICY_FIELDS.filter((field) => field.path.startsWith(`${group}.`));
    if (!fields.some((field) => changed(field.path))) continue;
    const leading = group === "gate" ? fields.slice(0, 1) : fields;
    const empty = leading.every((field) => values[field.path].trim() === "");
    request[group] = empty
      ? null
      : Object.fromEntries(
          fields.map((field) => [field.path.slice(group.length + 1), parsed(field, values[field.path], kind)]),
        );
  }
  return request as NewPolicy;
}
