// From a stored policy to the texts of the form, and back to what is sent.

import { POLICIES } from "@/api/policies";
import type { NewPolicy, Policy } from "@/api/types";
import {
  POLICY_FIELDS,
  type PolicyField,
  type PolicyValues,
  type WorkKind,
  standardOf,
} from "./policyGroups";

export const NO_POLICY: PolicyValues = Object.fromEntries(
  POLICY_FIELDS.map((field) => [field.path, ""]),
) as PolicyValues;

/** What a policy has at this path, as a person would write it; null where it has not even the value that it is part of. */
function textAt(policy: Policy, field: PolicyField): string | null {
  const [name = "", part] = field.path.split(".");
  let value: unknown = policy[name as keyof Policy];
  if (part !== undefined) {
    if (value === null) return null;
    value = (value as Record<string, unknown>)[part];
  }
  if (value === null) return "none";
  if (typeof value === "boolean") return value ? "true" : "off";
  if (!Array.isArray(value)) return String(value as string | number);
  return field.type === "command" ? JSON.stringify(value) : value.join(", ") || "none";
}

/** A stored policy as the form shows it: what is the default stays empty. */
export function policyValues(policy: Policy, kind: WorkKind): PolicyValues {
  const values = { ...NO_POLICY };
  for (const field of POLICY_FIELDS) {
    const text = textAt(policy, field);
    if (text !== null && text !== standardOf(field, kind)) values[field.path] = text;
  }
  return values;
}

/** What is sent for a text; the server says what is wrong with it. */
function parsed(field: PolicyField, text: string, kind: WorkKind): unknown {
  const given = text.trim() === "" ? standardOf(field, kind) : text.trim();
  if (given === "none" && field.nullable) return null;
  if (field.type === "flag") return given === "true";
  if (field.type === "names") return given === "none" ? [] : names(given);
  if (field.type === "command") return commandOf(given);
  const isNumber = field.type === "whole" || field.type === "number";
  return isNumber && /^-?\d+(\.\d+)?$/.test(given) ? Number(given) : given;
}

function names(text: string): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
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
  const changed = (field: PolicyField) => values[field.path].trim() !== before[field.path].trim();
  for (const field of POLICY_FIELDS.filter(changed)) {
    const [name = "", part] = field.path.split(".");
    if (part === undefined) request[name] = parsed(field, values[field.path], kind);
    else if (OPTIONAL.has(name)) request[name] = wholeValue(name, values, kind);
    else request[name] = { ...(request[name] as object | undefined), [part]: parsed(field, values[field.path], kind) };
  }
  return request as NewPolicy;
}

const OPTIONAL = new Set<string>(POLICIES.filter((policy) => policy.default === null).map((policy) => policy.name));

/** A value that need not be: null, unless one of its fields makes it be; then it is sent with all its parts. */
function wholeValue(name: string, values: PolicyValues, kind: WorkKind): unknown {
  const fields = POLICY_FIELDS.filter((field) => field.path.startsWith(`${name}.`));
  const required = fields.filter((field) => field.required);
  const leading = required.length > 0 ? required : fields;
  if (leading.every((field) => values[field.path].trim() === "")) return null;
  return Object.fromEntries(
    fields.map((field) => [field.path.slice(name.length + 1), parsed(field, values[field.path], kind)]),
  );
}

/** The timeout of this kind of work, as it is sent. */
export function standardTimeout(kind: WorkKind): string | null {
  const field = POLICY_FIELDS.find(({ path }) => path === "timeout");
  return field === undefined ? null : (parsed(field, "", kind) as string | null);
}
