// The arithmetic of the heat map: which day is in which cell, and how strong its colour is.

import type { HistoryDay } from "@/api/types";
import { look, shownCounts } from "@/components/stateLook";
import { counted } from "@/time/format";

export type DayTone = "empty" | "good" | "warn" | "bad" | "idle";
/** From faint to strong. */
export const LEVELS = [1, 2, 3, 4];

export interface HeatMapDay {
  date: string;
  week: number;
  weekday: number;
  tone: DayTone;
  /** 1 (faint) to 4 (strong); 0 for a day without runs. */
  level: number;
  day: HistoryDay | null;
}

export interface HeatMapGrid {
  weeks: number;
  days: HeatMapDay[];
  months: { week: number; label: string }[];
}

const DAY = 86_400_000;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
export const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** Days are plain dates: counted in UTC, where every one has 24 hours. */
function dayNumber(date: string): number {
  return Math.round(Date.parse(`${date}T00:00:00Z`) / DAY);
}

function dateOf(number: number): string {
  return new Date(number * DAY).toISOString().slice(0, 10);
}

/** 0 is Monday. The first of January 1970 was a Thursday. */
function weekdayOf(number: number): number {
  return (((number + 3) % 7) + 7) % 7;
}

function countRuns(day: HistoryDay | null): number {
  return day === null ? 0 : Object.values(day.states).reduce((sum, count) => sum + count, 0);
}

/** Red as soon as something failed, amber as soon as something succeeded with errors; green when something succeeded;
 *  grey when all was cancelled or not executed. */
function toneOf(day: HistoryDay | null): DayTone {
  if (day === null || countRuns(day) === 0) return "empty";
  if ((day.states.failed ?? 0) > 0) return "bad";
  if (day.with_errors > 0) return "warn";
  return (day.states.succeeded ?? 0) > 0 || (day.states.running ?? 0) > 0 ? "good" : "idle";
}

function levelOf(day: HistoryDay | null, most: number): number {
  const count = countRuns(day);
  if (day === null || count === 0) return 0;
  const wrong = (day.states.failed ?? 0) || day.with_errors;
  // A red or amber day is as strong as the share that failed or had errors, a green one as busy as it was beside the
  // busiest.
  const share = wrong > 0 ? wrong / count : Math.log1p(count) / Math.log1p(most);
  return Math.min(4, Math.max(1, Math.ceil(share * 4)));
}

/** The last `weeks` weeks up to today, Monday first. */
export function heatMapGrid(history: readonly HistoryDay[], today: string, weeks = 26): HeatMapGrid {
  const last = dayNumber(today);
  const first = last - weekdayOf(last) - (weeks - 1) * 7;
  const known = new Map(history.map((day) => [day.date, day]));
  const most = Math.max(1, ...history.map(countRuns));
  const days: HeatMapDay[] = [];
  for (let number = first; number <= last; number += 1) {
    const date = dateOf(number);
    const day = known.get(date) ?? null;
    const week = Math.floor((number - first) / 7);
    days.push({ date, week, weekday: weekdayOf(number), tone: toneOf(day), level: levelOf(day, most), day });
  }
  return { weeks, days, months: monthLabels(days) };
}

/** A month is named above the first week that begins in it, unless the name would touch the one before. */
function monthLabels(days: readonly HeatMapDay[]): { week: number; label: string }[] {
  const labels: { week: number; label: string }[] = [];
  let month = "";
  for (const day of days) {
    if (day.weekday !== 0 || day.date.slice(0, 7) === month) continue;
    month = day.date.slice(0, 7);
    const before = labels.at(-1);
    if (before !== undefined && day.week - before.week < 3) labels.pop();
    labels.push({ week: day.week, label: MONTHS[Number(month.slice(5)) - 1] ?? month });
  }
  return labels;
}

export const LEFT = 30;
const LEAST = 10;
const MOST = 19;

/** How many weeks are drawn, and how far apart: as large as there is room for. Where that is little the oldest weeks
 *  stay out, so that a day is still something to touch. */
export function heatMapLayout(width: number, most: number): { weeks: number; pitch: number } {
  const room = Math.floor((width - LEFT) / LEAST);
  // Nothing is measured yet.
  const weeks = width === 0 ? most : Math.max(1, Math.min(most, room));
  return { weeks, pitch: Math.min(MOST, Math.max(LEAST, Math.floor((width - LEFT) / weeks))) };
}

/** `Mon 16 Nov 2026: 12 runs, 11 succeeded, 1 failed`. */
export function daySummary(day: HeatMapDay): string {
  const [year, month, date] = day.date.split("-");
  const name = `${WEEKDAYS[day.weekday]} ${Number(date)} ${MONTHS[Number(month) - 1]} ${year}`;
  const count = countRuns(day.day);
  if (day.day === null || count === 0) return `${name}: no runs`;
  const parts = Object.entries(shownCounts(day.day))
    .filter(([, many]) => many > 0)
    .sort((left, right) => right[1] - left[1])
    .map(([state, many]) => `${many.toLocaleString("en-US")} ${look(state).label}`);
  return `${name}: ${counted(count, "run")}, ${parts.join(", ")}`;
}

/** What the whole map says in a sentence. */
export function historySummary(history: readonly HistoryDay[]): string {
  const runs = history.reduce((sum, day) => sum + countRuns(day), 0);
  if (runs === 0) return "No runs in the last half year.";
  const bad = history.filter((day) => toneOf(day) === "bad").length;
  const days = history.filter((day) => countRuns(day) > 0).length;
  const failed = bad === 0 ? "nothing failed" : `something failed on ${counted(bad, "day")}`;
  const wrong = history.filter((day) => day.with_errors > 0).length;
  const errors = wrong === 0 ? "" : `, something had errors on ${counted(wrong, "day")}`;
  return `${counted(runs, "run")} on ${counted(days, "day")}; ${failed}${errors}.`;
}
