// What can be seen to be wrong with a policy without asking the server: each field by its kind, in the words of the form.

import { POLICIES } from "@/api/policies";
import { NO_POLICY } from "./policyFields";
import { POLICY_FIELDS, type PolicyField, type PolicyValues } from "./policyGroups";
import type { LocalErrors } from "./workTexts";

const PART = /^\d+(\.\d+)?\s*(ms|us|w|d|h|m|s)\s*/;
const MOST_DOLLARS = 1_000_000;

/** What is wrong with a length of time, after its label; null when it is one. */
export function durationProblem(text: string): string | null {
  const given = text.trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(given)) return `needs a unit, such as ${given}s or ${given}m.`;
  let rest = given;
  while (PART.test(rest)) rest = rest.replace(PART, "");
  return given === "" || rest !== "" ? "is a length of time, such as 90s, 5m, 1h30m or 2d." : null;
}

function wholeProblem({ least = 1, most = Infinity, standard }: PolicyField, text: string): string | null {
  const number = /^-?\d+$/.test(text) ? Number(text) : null;
  if (number !== null && number >= least && number <= most) return null;
  if (number !== null && number > most) return `is ${most.toLocaleString("en-US")} at most.`;
  const example = /^\d+$/.test(standard) ? standard : "3";
  return `is a whole number${least === 0 || least === 1 ? ` from ${least}` : ""}, such as ${example}.`;
}

function dollarProblem(text: string): string | null {
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  return number > 0 && number <= MOST_DOLLARS ? null : "is a number above 0, such as 0.5.";
}

/** What the channels of `notify` are checked against; undefined while nobody knows them. */
export type Channels = readonly string[] | undefined;

function channelProblem(text: string, channels: Channels): string | null {
  const named = text.split(",").map((entry) => entry.split("=")[0]?.trim() ?? "");
  const unknown = channels === undefined ? undefined : named.find((name) => name !== "" && !channels.includes(name));
  if (unknown === undefined) return null;
  const known = channels?.length ? `Choose from ${channels.join(", ")}.` : "Make it under Settings, Channels.";
  return `names ${unknown}, which is no channel. ${known}`;
}

function problemOf(field: PolicyField, given: string, channels: Channels): string | null {
  const text = given.trim();
  if (text === "" || (text === "none" && (field.nullable || field.type === "names"))) return null;
  if (field.type === "whole") return wholeProblem(field, text);
  if (field.type === "number") return dollarProblem(text);
  if (field.type === "duration") return durationProblem(text);
  return field.path === "notify" ? channelProblem(text, channels) : null;
}

/** A part of a value that is not there without another part: it would be dropped without a word. */
function lonelyProblem(field: PolicyField, values: PolicyValues): string | null {
  const [name, part] = field.path.split(".");
  if (part === undefined || field.required || values[field.path].trim() === "") return null;
  const missing = POLICY_FIELDS.find(
    (other) => other.required && other.path.startsWith(`${name}.`) && values[other.path].trim() === "",
  );
  return missing === undefined ? null : `does nothing without a ${missing.label.toLowerCase()}: enter one, or clear this.`;
}

/** The errors of what differs from `before`, by the names of the form. */
export function policyProblems(values: PolicyValues, before: PolicyValues = NO_POLICY, channels?: Channels): LocalErrors {
  const found: LocalErrors = {};
  for (const field of POLICY_FIELDS) {
    if (values[field.path] === before[field.path]) continue;
    const problem = problemOf(field, values[field.path], channels) ?? lonelyProblem(field, values);
    if (problem !== null) found[`policy.${field.path}`] = `${field.label} ${problem}`;
  }
  return found;
}

const LABELS = new Map<string, string>([
  ...POLICIES.map(({ name, label }): [string, string] => [name, label]),
  ...POLICY_FIELDS.map(({ path, label }): [string, string] => [path, label]),
]);

/** A message of the server, in which a field has the name that the form gives it. */
export function inLabels(message: string): string {
  const [first = ""] = message.split(" ", 1);
  const label = LABELS.get(first.replace(/^policy\./, ""));
  return label === undefined ? message : `${label}${message.slice(first.length)}`;
}
