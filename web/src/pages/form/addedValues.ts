// Work of a kind that a package adds, in texts by field: from work to these, and from these to what is sent.

import type { AddedWork, Kind, KindField, NewWork } from "@/api/types";
import { type LocalErrors, json, pairs, readJson, readPairs } from "./workTexts";

/** A value as the form shows it; what is null is empty. */
function textOf(field: KindField, value: unknown): string {
  if (value === null || value === undefined) return "";
  switch (field.form) {
    case "texts":
      return (value as unknown[]).join("\n");
    case "pairs":
      return pairs(value as Record<string, string>, "=");
    case "command":
      return typeof value === "string" ? value : JSON.stringify(value);
    case "json":
      return json(value);
    default:
      return String(value as string | number | boolean);
  }
}

/** The texts of a stored work, or of a new one of this kind. */
export function addedTexts(kind: Kind, work?: AddedWork): Record<string, string> {
  return Object.fromEntries(
    kind.fields.map((field) => [field.name, textOf(field, work === undefined ? field.default : work[field.name])]),
  );
}

/** What is sent for a text; the server says what is wrong with it. */
function valueOf(field: KindField, text: string, errors: LocalErrors): unknown {
  const name = `work.${field.name}`;
  switch (field.form) {
    case "switch":
      return text === "true";
    case "number":
      return /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text.trim();
    case "texts":
      return text.split("\n").filter((line) => line.trim() !== "");
    case "pairs":
      return readPairs(text, "=", name, errors);
    case "json":
      return readJson(text, name, errors);
    default:
      return text;
  }
}

/** What is empty has its default, or is null where it may be. */
export function addedRequest(kind: Kind, texts: Record<string, string>, errors: LocalErrors): NewWork {
  const said: Record<string, unknown> = { kind: kind.name };
  for (const field of kind.fields) {
    const text = texts[field.name] ?? "";
    if (text.trim() !== "") said[field.name] = valueOf(field, text, errors);
    else if (field.required) said[field.name] = field.form === "text" ? text : valueOf(field, text, errors);
    else if (field.nullable) said[field.name] = null;
  }
  return said as unknown as NewWork;
}
