// Work of a kind that a package adds, in texts by field: from work to these, and from these to what is sent.

import type { AddedWork, Kind, KindField, NewWork } from "@/api/types";
import { commandOf } from "./policyFields";
import { type LocalErrors, json, pairs, quoted, readJson, readPairs, unquoted } from "./workTexts";

export interface AddedValues {
  /** The kind, if a package adds it, and the texts of its fields. */
  added: Kind | null;
  texts: Record<string, string>;
  /** The work that the texts were made of; null for a new one. */
  stored: AddedWork | null;
}

/** An item on a line of its own. What would be read as another one is a JSON text. */
function itemText(field: KindField, item: unknown): string {
  if (typeof item !== "string") return String(item as number);
  return item === "" || (field.has_numbers && isDigits(item)) ? JSON.stringify(item) : quoted(item);
}

const isDigits = (text: string): boolean => /^\d+$/.test(text);

/** A value as the form shows it; what is null is empty. */
function textOf(field: KindField, value: unknown): string {
  if (value === null || value === undefined) return "";
  // Of a list or an object that is hidden, the stars.
  if (typeof value === "string" && field.form !== "json") return value;
  switch (field.form) {
    case "texts":
      return (value as unknown[]).map((item) => itemText(field, item)).join("\n");
    case "pairs":
      return pairs(value as Record<string, string>, "=");
    case "command":
      return JSON.stringify(value);
    case "json":
      return json(value);
    default:
      return String(value as number | boolean);
  }
}

/** What a form begins with: a stored work, or a new one of this kind. */
export function addedValues(kind: Kind, work?: AddedWork): AddedValues {
  const texts = kind.fields.map((field) => [field.name, beginning(field, work ?? null)]);
  return { added: kind, texts: Object.fromEntries(texts) as Record<string, string>, stored: work ?? null };
}

const beginning = (field: KindField, stored: AddedWork | null): string =>
  textOf(field, stored === null ? field.default : stored[field.name]);

/** What is sent for a text; the server says what is wrong with it. */
function valueOf(field: KindField, text: string, errors: LocalErrors): unknown {
  const name = `work.${field.name}`;
  switch (field.form) {
    case "switch":
      return text === "true";
    case "number":
      return numberOf(text.trim());
    case "texts":
      return text
        .split("\n")
        .filter((line) => line.trim() !== "")
        .map((line) => (field.has_numbers && isDigits(line.trim()) ? numberOf(line.trim()) : unquoted(line)));
    case "pairs":
      return readPairs(text, "=", name, errors);
    case "command":
      return commandOf(text);
    case "json":
      return readJson(text, name, errors);
    default:
      return text;
  }
}

/** A number, unless it is a whole one that JavaScript would change; the server says what is wrong with the others. */
function numberOf(text: string): number | string {
  const isNumber = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
  const value = Number(text);
  const isChanged = /^[+-]?\d+$/.test(text) && !Number.isSafeInteger(value);
  return isNumber && Number.isFinite(value) && !isChanged ? value : text;
}

const MAY_BE_EMPTY = new Set<KindField["form"]>(["text", "texts", "pairs", "command"]);

/**
 * What nobody touched is sent as it is stored, and not at all for a new work. What was emptied is null where it may be,
 * else empty where it may be, else it has its default.
 */
export function addedRequest({ added, texts, stored }: AddedValues & { added: Kind }, errors: LocalErrors): NewWork {
  const said: Record<string, unknown> = { kind: added.name };
  for (const field of added.fields) {
    const text = texts[field.name] ?? "";
    const isEmpty = text.trim() === "";
    if (text === beginning(field, stored) && (stored !== null || !field.required)) {
      if (stored !== null) said[field.name] = stored[field.name];
    } else if (isEmpty && field.nullable) said[field.name] = null;
    else if (!isEmpty || field.required || MAY_BE_EMPTY.has(field.form))
      said[field.name] = valueOf(field, text, errors);
  }
  return said as unknown as NewWork;
}
