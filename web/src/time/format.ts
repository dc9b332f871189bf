/** Moments and durations in words. Pure: the zone and the time now are passed in. */

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = zone + JSON.stringify(options);
  let found = formats.get(key);
  if (found === undefined) {
    try {
      found = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone });
    } catch {
      // A zone that this browser does not know (yet).
      found = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC", timeZoneName: "short" });
    }
    formats.set(key, found);
  }
  return found;
}

const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
const CLOCK_SECONDS = { ...CLOCK, second: "2-digit" } as const;
const DAY = { day: "numeric", month: "short" } as const;

const days = new Map<string, string>();
const MOST_DAYS = 2000;

/** "2026-11-16" in the zone. Lists ask for the same few minutes again and again: those are remembered. */
export function dayOf(moment: number, zone: string): string {
  const key = `${Math.floor(moment / 60_000)} ${zone}`;
  const known = days.get(key);
  if (known !== undefined) return known;
  const parts = format(zone, { year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(moment);
  const of = (type: string) => parts.find((part) => part.type === type)?.value ?? "";
  const day = `${of("year")}-${of("month")}-${of("day")}`;
  if (days.size >= MOST_DAYS) days.clear();
  days.set(key, day);
  return day;
}

export function formatClock(moment: number, zone: string, seconds = false): string {
  return format(zone, seconds ? CLOCK_SECONDS : CLOCK).format(moment);
}

/** To the millisecond: "14:03:07.120". */
export function formatStamp(moment: number, zone: string): string {
  return format(zone, { ...CLOCK_SECONDS, fractionalSecondDigits: 3 }).format(moment);
}

/** As short as it can be told: the clock for today, the day before it otherwise, the year when it is another. */
export function formatTime(moment: number, zone: string, now: number, seconds = false): string {
  const clock = formatClock(moment, zone, seconds);
  const day = dayOf(moment, zone);
  const today = dayOf(now, zone);
  if (day === today) return clock;
  if (day === dayOf(now + 86_400_000, zone)) return `tomorrow ${clock}`;
  if (day === dayOf(now - 86_400_000, zone)) return `yesterday ${clock}`;
  const sameYear = day.slice(0, 4) === today.slice(0, 4);
  const date = format(zone, sameYear ? DAY : { ...DAY, year: "numeric" }).format(moment);
  return `${date} ${clock}`;
}

/** All of it: "Mon 16 Nov 2026, 14:03:05 GMT+1 (Europe/Berlin)". */
export function formatFull(moment: number, zone: string): string {
  const text = format(zone, {
    weekday: "short",
    ...DAY,
    year: "numeric",
    ...CLOCK_SECONDS,
    timeZoneName: "short",
  }).format(moment);
  return zone === "UTC" ? text : `${text} (${zone})`;
}

const two = (value: number): string => String(value).padStart(2, "0");

/** "850 ms", "4.2 s", "4 m 12 s", "1 h 05 m", "2 d 3 h". */
export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 0) return `-${formatDuration(-seconds)}`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${(Math.round(seconds * 10) / 10).toString()} s`;
  return formatSpan(seconds);
}

/** As formatDuration, in whole seconds: for what ticks. */
export function formatSpan(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} m ${two(whole % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${two(minutes % 60)} m`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** "in 4 m 12 s", "3 h 10 m ago", "now". */
export function formatRelative(moment: number, now: number): string {
  const seconds = Math.round((moment - now) / 1000);
  if (seconds === 0) return "now";
  return seconds > 0 ? `in ${formatSpan(seconds)}` : `${formatSpan(-seconds)} ago`;
}

/** One unit is enough for an age in a dense list: "12 s", "4 m", "3 h", "2 d". */
export function formatAge(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86_400)} d`;
}

/** "1 run", "12 runs", "12,345 runs". */
export function counted(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? noun : nouns}`;
}

/** "12", or "12 of 1,234" when not all are shown. */
export function shownOf(shown: number, total: number): string {
  const all = total.toLocaleString("en-US");
  return total > shown ? `${shown.toLocaleString("en-US")} of ${all}` : all;
}

/** "a, b and c"; of many the first few: "a, b, c, d, e and 7 more". */
export function listed(names: readonly string[], most = 5): string {
  const shown = names.length > most ? [...names.slice(0, most), `${names.length - most} more`] : names;
  return new Intl.ListFormat("en-GB").format(shown);
}
