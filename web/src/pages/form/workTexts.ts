// Values of work as texts of the form, and back: pairs on lines, JSON.

/** What can be seen to be wrong without asking the server, by field. */
export type LocalErrors = Record<string, string>;

/** What a line cannot say is a JSON text: more than one line, blanks at its edges, a quote at its beginning. */
export const quoted = (value: string): string => (/[\r\n]|^[\s"]|\s$/.test(value) ? JSON.stringify(value) : value);
export const pairs = (record: Record<string, string>, joiner: string): string =>
  Object.entries(record)
    .map(([name, value]) => `${name}${joiner}${quoted(value)}`)
    .join("\n");
export const json = (value: unknown): string => JSON.stringify(value, null, 2);

/** The value of a line; between double quotes it is a JSON text. */
export function unquoted(value: string): string {
  if (!/^".*"$/.test(value)) return value;
  try {
    return JSON.parse(value) as string;
  } catch {
    return value; // `"a" and "b"` is no JSON: it is what it says
  }
}

/** `NAME=value` or `Name: value`, one on each line. */
export function readPairs(given: string, joiner: "=" | ":", field: string, errors: LocalErrors): Record<string, string> {
  const found: Record<string, string> = {};
  given.split("\n").forEach((line, index) => {
    if (line.trim() === "") return;
    const at = line.indexOf(joiner);
    if (at < 1) errors[field] = `Line ${index + 1} is not ${joiner === "=" ? "NAME=value" : "Name: value"}.`;
    else found[line.slice(0, at).trim()] = unquoted(line.slice(at + 1).trim());
  });
  return found;
}

export function readJson(given: string, field: string, errors: LocalErrors): unknown {
  try {
    return JSON.parse(given) as unknown;
  } catch (error) {
    errors[field] = `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
    return undefined;
  }
}
