// The tabs of the timing field and its text form: from what the tabs hold to text, and back where the tabs can say it.

export type TimingDraft =
  | { kind: "at"; mode: "at"; when: string }
  | { kind: "at"; mode: "in"; amount: string; unit: Unit }
  | { kind: "every"; amount: string; unit: Unit; afterFinish: boolean }
  | { kind: "calendar"; repeat: "daily"; time: string }
  | { kind: "calendar"; repeat: "weekly"; days: Weekday[]; time: string }
  | { kind: "calendar"; repeat: "monthly"; day: string; time: string }
  | { kind: "cron"; expression: string };

export type TimingTab = TimingDraft["kind"] | "text";
export type Unit = "s" | "m" | "h" | "d";
export type Weekday = "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun";

export const WEEKDAYS: readonly Weekday[] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
export const UNITS: readonly { value: Unit; label: string }[] = [
  { value: "s", label: "seconds" },
  { value: "m", label: "minutes" },
  { value: "h", label: "hours" },
  { value: "d", label: "days" },
];

/** Presets of people who only want it now and then: so long after it has finished, not on a grid of the clock. */
export const PRESETS: readonly { label: string; text: string }[] = ["1h", "3h", "6h", "12h", "24h"].map((label) => ({
  label,
  text: `every ${label} after finish`,
}));

/** Whether a timing is that of a preset, however it is written: `every 24h after finish` is `every 1d after finish`. */
export function isPreset(text: string, preset: string): boolean {
  const plain = (timing: string) => timing.trim().toLowerCase().replace(/\s+/g, " ").replace(/^every 1d /, "every 24h ");
  return plain(text) === plain(preset);
}

export function textOf(draft: TimingDraft): string {
  switch (draft.kind) {
    case "at":
      return draft.mode === "at" ? `at ${draft.when}` : `in ${draft.amount}${draft.unit}`;
    case "every":
      return `every ${draft.amount}${draft.unit}${draft.afterFinish ? " after finish" : ""}`;
    case "cron":
      return cronText(draft.expression);
    case "calendar":
      if (draft.repeat === "daily") return `daily ${draft.time}`;
      if (draft.repeat === "weekly") return `weekly ${draft.days.join(",")} ${draft.time}`;
      return `monthly ${draft.day} ${draft.time}`;
  }
}

/** A field of five that is left empty is any. */
function cronText(expression: string): string {
  const fields = expression.split(" ");
  return fields.length === 5 ? fields.map((field) => field || "*").join(" ") : expression;
}

const CLOCK = /^\d{1,2}:\d{2}(:\d{2})?$/;
const CRON_FIELD = /^[\d*/,\-#?LWa-z()]+$/i;

/** What the tabs would hold for this text; null when it says more than they can (`or`, `except`, jitter, a zone). */
export function draftOf(text: string): TimingDraft | null {
  const words = text.trim().toLowerCase().split(/\s+/);
  const [first = "", second = "", ...rest] = words;
  if (first === "every" || first === "in") return intervalDraft(first, second, rest);
  if (first === "at" && rest.length === 0 && /^\d{4}-\d{2}-\d{2}t\d{2}:\d{2}(:\d{2})?$/.test(second)) {
    return { kind: "at", mode: "at", when: second.toUpperCase() };
  }
  if (first === "daily" && CLOCK.test(second) && rest.length === 0) {
    return { kind: "calendar", repeat: "daily", time: clock(second) };
  }
  if (first === "weekly" || first === "monthly") return calendarDraft(first, second, rest);
  if (first.startsWith("@") && words.length === 1 && first !== "@") return { kind: "cron", expression: first };
  const isCron =
    words.length >= 5 && words.length <= 7 && words.every((word) => CRON_FIELD.test(word)) && /^([\d*]|h([,/(]|$))/.test(first);
  return isCron ? { kind: "cron", expression: text.trim().replace(/\s+/g, " ") } : null;
}

function intervalDraft(first: "every" | "in", second: string, rest: string[]): TimingDraft | null {
  const found = /^(\d+)(s|m|h|d)$/.exec(second);
  const tail = rest.join(" ");
  if (found === null || (tail !== "" && (tail !== "after finish" || first === "in"))) return null;
  const amount = found[1] ?? "";
  const unit = found[2] as Unit;
  if (first === "in") return { kind: "at", mode: "in", amount, unit };
  return { kind: "every", amount, unit, afterFinish: tail !== "" };
}

function calendarDraft(repeat: "weekly" | "monthly", second: string, rest: string[]): TimingDraft | null {
  const time = rest[0] ?? "";
  if (rest.length !== 1 || !CLOCK.test(time)) return null;
  if (repeat === "monthly") {
    const good = second === "last" || (/^\d{1,2}$/.test(second) && Number(second) >= 1 && Number(second) <= 31);
    return good ? { kind: "calendar", repeat, day: second, time: clock(time) } : null;
  }
  const days = second.split(",");
  if (!days.every((day): day is Weekday => WEEKDAYS.some((each) => each === day))) return null;
  return { kind: "calendar", repeat, days: WEEKDAYS.filter((day) => days.includes(day)), time: clock(time) };
}

/** `9:30` is 09:30 in a time field. */
function clock(text: string): string {
  return text.padStart(text.length === 4 || text.length === 7 ? text.length + 1 : text.length, "0");
}

/** What a tab begins with when the text says something else: nothing, or the same in cron where cron can say it. */
export function firstDraft(kind: TimingDraft["kind"], before: TimingDraft | null): TimingDraft {
  switch (kind) {
    case "at":
      return { kind, mode: "at", when: "" };
    case "every":
      return { kind, amount: "", unit: "m", afterFinish: false };
    case "calendar":
      return { kind, repeat: "daily", time: "" };
    case "cron":
      return { kind, expression: cronOf(before) ?? "    " };
  }
}

/** Whether it is a timing already, or fields are still to be filled in. */
export function isWhole(draft: TimingDraft): boolean {
  switch (draft.kind) {
    case "at":
      return (draft.mode === "at" ? draft.when : draft.amount) !== "";
    case "every":
      return draft.amount !== "";
    case "calendar":
      return draft.time !== "";
    case "cron":
      return draft.expression.trim() !== "";
  }
}

/** The cron expression of a calendar draft, so that it can be read and changed there. */
function cronOf(draft: TimingDraft | null): string | null {
  if (draft?.kind !== "calendar") return null;
  const [hour = 0, minute = 0] = draft.time.split(":").map(Number);
  if (draft.repeat === "daily") return `${minute} ${hour} * * *`;
  if (draft.repeat === "weekly") return `${minute} ${hour} * * ${draft.days.join(",")}`;
  return `${minute} ${hour} ${draft.day === "last" ? "L" : draft.day} * *`;
}

/** The text with a caret below the place that is wrong, for a monospaced font. */
export function marker(text: string, position: number | null | undefined): { text: string; caret: string } | null {
  if (position === null || position === undefined || position < 0) return null;
  const before = text.slice(0, position);
  const word = /^\S+/.exec(text.slice(position))?.[0].length ?? 1;
  return { text, caret: `${" ".repeat(before.length)}${"^".repeat(Math.max(1, word))}` };
}
