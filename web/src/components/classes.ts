/** Joins class names; what is false or missing is left out. */
export function classes(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(" ");
}

/** A column that takes the height that the column around it has left. */
export const FILL = "flex min-w-0 flex-[1_1_0px] flex-col";
