// The policies of the form in their groups, from the server's table, and what holds when a field is empty.

import { POLICY_CONTROLS } from "@/api/policies";

/** The kind of a work, by its name; one that a package adds comes with its own timeout. */
export interface WorkKind {
  kind: string;
  added: { timeout: string | null } | null;
}
export type PolicyPath = (typeof POLICY_CONTROLS)[number]["path"];
export type PolicyValues = Record<PolicyPath, string>;

export interface PolicyField {
  path: PolicyPath;
  group: string;
  label: string;
  help: string;
  /** What holds when the field is empty, as it is shown. */
  standard: string;
  type: "text" | "duration" | "whole" | "number" | "flag" | "names" | "command" | "choice";
  /** Of a whole number. */
  least?: number;
  most?: number;
  /** “none” may be given. */
  nullable: boolean;
  /** Without it, its value is none. */
  required?: boolean;
  /** What holds instead for some kinds of work. */
  kinds?: Partial<Record<string, string>>;
  choices?: readonly { value: string; label: string }[];
}

export interface PolicyGroup {
  title: string;
  fields: PolicyField[];
}

const CONTROLS: readonly PolicyField[] = POLICY_CONTROLS;
export const POLICY_GROUPS: PolicyGroup[] = [...new Set(CONTROLS.map((field) => field.group))].map((title) => ({
  title,
  fields: CONTROLS.filter((field) => field.group === title),
}));
export const POLICY_FIELDS: PolicyField[] = POLICY_GROUPS.flatMap((group) => group.fields);

/** What holds when the field is empty; of some it depends on the kind of work. */
export function standardOf(field: PolicyField, { kind, added }: WorkKind): string {
  if (field.kinds === undefined) return field.standard;
  const own = added === null ? field.kinds[kind] : field.path === "timeout" ? added.timeout : undefined;
  return own ?? field.standard;
}

/** The line below a field. */
export function helpOf(field: PolicyField): string {
  if (field.type === "names") return `${field.help} Names, separated by commas.`;
  return field.nullable && field.standard !== "none" ? `${field.help} “none” is no limit.` : field.help;
}
