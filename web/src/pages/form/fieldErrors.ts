// The server's field errors at the fields of the form: `work.command`, `policy.retry`, `timing`.

import type { FieldProblem } from "@/api/types";

export type FieldErrors = Record<string, FieldProblem>;

/** The field of the form that the server means; null when there is none, and it is told above the form. */
export function formField(field: string | null, known: readonly string[]): string | null {
  if (field === null || field === "") return null;
  const wanted = field === "text" ? "timing" : field === "work.json" ? "work.body" : field;
  const tries = [wanted, `work.${wanted}`, `policy.${wanted}`];
  for (const each of tries) {
    if (known.includes(each)) return each;
    // `policy.retry` is shown at the first of its parts, `work.env.NAME` at `work.env`.
    const part = known.find((name) => name.startsWith(`${each}.`));
    if (part !== undefined) return part;
    const whole = known.find((name) => each.startsWith(`${name}.`));
    if (whole !== undefined) return whole;
  }
  return null;
}

/** The problems by field of the form, and those that belong to none. */
export function placeErrors(
  problems: readonly FieldProblem[],
  known: readonly string[],
): { fields: FieldErrors; others: FieldProblem[] } {
  const fields: FieldErrors = {};
  const others: FieldProblem[] = [];
  for (const problem of problems) {
    const field = formField(problem.field, known);
    if (field === null) others.push(problem);
    else fields[field] ??= problem;
  }
  return { fields, others };
}

/** The first field with an error in the order of the form; where the focus goes. */
export function firstField(errors: FieldErrors, order: readonly string[]): string | null {
  return order.find((field) => field in errors) ?? null;
}
