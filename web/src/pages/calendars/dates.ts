// The dates of a calendar: 2026-12-24, or 12-24 for every year. What people paste becomes such dates, and which is next.

import type { FieldProblem } from "@/api/types";
import { counted } from "@/time/format";

export const MOST_DATES = 1000;
const NAMED = 3;
const RIGHT = "Write each as 2026-12-24, or as 12-24 for every year.";
const DATE = /^(?:(\d{4})-)?(\d{1,2})-(\d{1,2})$/;
const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const A_DAY = 86_400_000;

const two = (text: string): string => text.padStart(2, "0");

/** The date as the server writes it; undefined if it is none. */
export function readDate(text: string): string | undefined {
  const [, year, month = "", day = ""] = DATE.exec(text) ?? [];
  const most = Number(month) === 2 && year !== undefined && !isLeap(Number(year)) ? 28 : (DAYS[Number(month) - 1] ?? 0);
  if (Number(day) < 1 || Number(day) > most || year === "0000") return undefined;
  return [...(year === undefined ? [] : [year]), two(month), two(day)].join("-");
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

interface ReadDates {
  dates: string[];
  /** What is no date, as it was written. */
  left: string[];
  problem: FieldProblem | null;
}

/** Dates on lines of their own, or separated by commas, semicolons or spaces. */
export function readDates(text: string): ReadDates {
  const dates: string[] = [];
  const left: string[] = [];
  for (const item of text.split(/[\n,;]/).map((each) => each.trim())) {
    if (item === "") continue;
    const found = item.split(/\s+/).map(readDate);
    if (found.every((date) => date !== undefined)) dates.push(...found);
    else left.push(item);
  }
  return { dates: inOrder(dates), left, problem: problemOf(left) };
}

function problemOf(left: readonly string[]): FieldProblem | null {
  const [first] = left;
  if (first === undefined) return null;
  const named = left.slice(0, NAMED).map((item) => `“${item.length > 40 ? `${item.slice(0, 40)}…` : item}”`);
  const more = left.length > NAMED ? ` and ${left.length - NAMED} more` : "";
  const right = suggestion(first);
  return {
    field: "dates",
    message: left.length === 1 ? `There is no date ${named[0]}.` : `These are no dates: ${named.join(", ")}${more}.`,
    hint: right === undefined ? RIGHT : `Did you mean ${right}? ${RIGHT}`,
  };
}

/** What is probably meant, where there is only one way to read it: `24.12.2026`, `2026/12/24`. */
function suggestion(text: string): string | undefined {
  const [, day, month, year] = /^(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})?$/.exec(text) ?? [];
  if (day !== undefined) return readDate([...(year === undefined ? [] : [year]), month, day].join("-"));
  return /^\d{4}[/.]\d{1,2}[/.]\d{1,2}$/.test(text) ? readDate(text.replaceAll(/[/.]/g, "-")) : undefined;
}

export const isYearly = (date: string): boolean => date.length === 5;

/** Each once; those of every year come first. */
export function inOrder(dates: readonly string[]): string[] {
  const rank = (date: string) => (isYearly(date) ? `0000-${date}` : date);
  return [...new Set(dates)].sort((one, other) => (rank(one) < rank(other) ? -1 : 1));
}

export const isPast = (date: string, today: string): boolean => !isYearly(date) && date < today;

/** The first date from today on; undefined if all of them have passed. */
export function nextDate(dates: readonly string[], today: string): string | undefined {
  return dates
    .map((date) => (isYearly(date) ? nextOfYears(date, today) : date))
    .filter((date) => date >= today)
    .sort()[0];
}

/** 29 February has at most eight years between two of them. */
function nextOfYears(date: string, today: string): string {
  const year = Number(today.slice(0, 4));
  const found = Array.from({ length: 9 }, (_, more) => `${year + more}-${date}`);
  return found.find((each) => each >= today && readDate(each) !== undefined) ?? "";
}

/** "today", "tomorrow", "in 35 days". */
export function daysUntil(date: string, today: string): string {
  const days = Math.round((Date.parse(date) - Date.parse(today)) / A_DAY);
  return days === 0 ? "today" : days === 1 ? "tomorrow" : `in ${counted(days, "day")}`;
}

const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "short", timeZone: "UTC" });

/** "Thu 2026-12-24", "12-24 every year". */
export function dateText(date: string): string {
  return isYearly(date) ? `${date} every year` : `${weekday.format(Date.parse(date))} ${date}`;
}
