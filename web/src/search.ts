/** Values in the address are text, as people type them: `?q=12` is not a number. */

export const parseSearch = (text: string): Record<string, string> => Object.fromEntries(new URLSearchParams(text));

export const stringifySearch = (search: Record<string, unknown>): string => {
  const given = Object.entries(search).flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [[name, String(value)]],
  );
  const text = new URLSearchParams(given).toString();
  return text === "" ? "" : `?${text}`;
};
