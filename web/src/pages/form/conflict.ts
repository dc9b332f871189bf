// Two people edited the same schedule: what the other one changed, in words.

import { type FormValues, kindsOf, valuesOf } from "./formValues";
import { POLICY_FIELDS, standardOf } from "./policyGroups";
import type { Schedule } from "@/api/types";

export interface Difference {
  label: string;
  before: string;
  theirs: string;
  /** This form changes it too. */
  mine: string | null;
}

type Flat = Map<string, string>;

function flat(values: FormValues): Flat {
  const found: Flat = new Map([
    ["Timing", values.timing],
    ["Zone", values.zone],
    ["Project", values.project || "none"],
    ["Note", values.note || "none"],
    ["State", values.enabled ? "on" : "off"],
  ]);
  const { added: _, stored: __, texts, ...work } = values.work;
  for (const [name, value] of Object.entries({ ...work, ...texts })) found.set(`Work: ${name}`, value || "none");
  for (const field of POLICY_FIELDS)
    found.set(field.label, values.policy[field.path] || standardOf(field, values.work));
  return found;
}

/** Each field that differs between the version this form began with and the one that is stored now. */
export function differences(before: FormValues, mine: FormValues, theirs: Schedule): Difference[] {
  const [old, own, other] = [flat(before), flat(mine), flat(valuesOf(theirs, kindsOf(before, mine)))];
  const found: Difference[] = [];
  for (const [label, value] of old) {
    const stored = other.get(label) ?? "";
    if (stored === value) continue;
    const said = own.get(label) ?? "";
    found.push({ label, before: value, theirs: stored, mine: said === value ? null : said });
  }
  return found;
}
