// The days that a timing leaves out by the name of a calendar: `daily 09:00 except calendar(office)`.

const NAME = String.raw`"(?:[^"\\]|\\.)*"|[^\s",():]+`;
const CALENDAR = new RegExp(String.raw`\bcalendar\(\s*(${NAME})\s*\)`, "gi");
const PLAIN = /^[^\s",():]+$/;
/** All of it stands behind the timing proper, in whatever order. */
const TAIL = new RegExp(String.raw`(?:\s+except\s+(?:calendar\(\s*(?:${NAME})\s*\)|holidays\([^()]*\)))+$`, "i");
/** So many runs are of the whole timing, and stand at its end. */
const COUNT = /\s+until\s+\d+\s+runs?$/i;

function unquoted(name: string): string | undefined {
  try {
    return name.startsWith('"') ? (JSON.parse(name) as string) : name;
  } catch {
    return undefined; // half typed
  }
}

/** A calendar as timings write it: one with spaces has quotes. */
export const calendarText = (name: string): string =>
  `calendar(${PLAIN.test(name) ? name : JSON.stringify(name)})`;

/** The names of the calendars that a timing leaves out. */
export function calendarsIn(text: string): string[] {
  if (/^\s*after\s/i.test(text)) return []; // the name of a schedule may look like one
  const found = [...text.matchAll(CALENDAR)].map(([, name = ""]) => unquoted(name));
  return [...new Set(found.filter((name) => name !== undefined))];
}

/** Why no days can be left out of it; undefined if they can. */
export function whyNoDaysOff(text: string): string | undefined {
  const plain = text.trim();
  if (plain === "") return "Enter a timing first.";
  if (/^after\s/i.test(plain)) return "A schedule that runs after others has no days of its own.";
  if (/\bafter finish\b/i.test(plain)) return "What counts from the end of a run cannot leave days out.";
  return undefined;
}

export function withCalendar(text: string, name: string): string {
  const plain = text.trim();
  const count = COUNT.exec(plain)?.[0] ?? "";
  return `${plain.slice(0, plain.length - count.length)} except ${calendarText(name)}${count}`;
}

export function withoutCalendar(text: string, name: string): string {
  return text
    .replaceAll(new RegExp(String.raw`\s+except\s+calendar\(\s*(${NAME})\s*\)`, "gi"), (found, given: string) =>
      unquoted(given) === name ? "" : found,
    )
    .trim();
}

/** The timing proper, and the days that it leaves out by a name. */
export function splitDaysOff(text: string): [string, string] {
  const plain = text.trimEnd();
  const tail = TAIL.exec(plain)?.[0] ?? "";
  return tail === "" ? [text, ""] : [plain.slice(0, plain.length - tail.length), tail];
}
