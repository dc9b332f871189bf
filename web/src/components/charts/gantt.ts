// The arithmetic of the timeline: rows, bars, clusters of bars that would touch, and the ticks of its axis.

import type { DueTime, TimelineRun } from "@/api/types";
import { type ShownState, shownState } from "@/components/stateLook";

export interface Scale {
  /** Milliseconds at the left edge, and how many the drawing is wide. */
  from: number;
  span: number;
  width: number;
}

export type BarKind = "solid" | "running" | "missed" | "due";

export interface BarMark {
  state: ShownState;
  left: number;
  width: number;
}

export interface GanttBar {
  kind: BarKind;
  state: string;
  left: number;
  width: number;
  start: number;
  end: number;
  runs: TimelineRun[];
  /** How many due times it stands for. */
  count: number;
  /** Where in it something else happened than to most of its runs. */
  marks: BarMark[];
  /** The sub-row that it is in: 0 is the topmost. */
  level: number;
}

export interface GanttRow {
  name: string;
  /** It is work without a schedule: the name is that of its task. */
  loose: boolean;
  runs: TimelineRun[];
  due: number[];
}

export const SPANS = { "1h": 3_600_000, "6h": 21_600_000, "24h": 86_400_000, "7d": 604_800_000 } as const;
export type Span = keyof typeof SPANS;

const LEAST_WIDTH = 3;
const MOST_LEVELS = 4;
const TICKS = [
  60_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000,
  172_800_000,
];

/** One row for each schedule (and each task that ran without one), by name. */
export function ganttRows(runs: readonly TimelineRun[], due: readonly DueTime[]): GanttRow[] {
  const rows = new Map<string, GanttRow>();
  const row = (name: string, loose: boolean): GanttRow => {
    const key = `${loose ? "task" : "schedule"}:${name}`;
    const found = rows.get(key) ?? { name, loose, runs: [], due: [] };
    rows.set(key, found);
    return found;
  };
  for (const run of runs) {
    row(run.schedule ?? run.task ?? "without a schedule", run.schedule === null).runs.push(run);
  }
  for (const each of due) row(each.schedule, false).due.push(Date.parse(each.at));
  return [...rows.values()].sort(
    (left, right) => Number(left.loose) - Number(right.loose) || left.name.localeCompare(right.name),
  );
}

/** From when to when a run is drawn. What never started is a point at its due time, or a stretch of missed ones. */
export function runStretch(run: TimelineRun, now: number): [number, number] {
  const due = Date.parse(run.due_at);
  if (run.started_at !== null) {
    const start = Date.parse(run.started_at);
    return [start, Math.max(start, run.finished_at === null ? now : Date.parse(run.finished_at))];
  }
  if (run.state === "queued") return [due, Math.max(due, now)];
  return [due, run.last_due_at === null ? due : Math.max(due, Date.parse(run.last_due_at))];
}

/** The runs of a row in sub-rows, so that none hides behind another: each goes into the first where the one before it
 *  has ended, and into the last where there is none. What overlaps by less than the narrowest bar is not seen to. */
export function stackRuns(runs: readonly TimelineRun[], now: number, perPixel: number): TimelineRun[][] {
  const unseen = LEAST_WIDTH * perPixel;
  const levels: { runs: TimelineRun[]; end: number }[] = [];
  const stretches = runs.map((run) => ({ run, stretch: runStretch(run, now) }));
  for (const { run, stretch } of stretches.sort((one, other) => one.stretch[0] - other.stretch[0])) {
    const [start, end] = stretch;
    let level = levels.find((each) => start >= each.end - unseen);
    if (level === undefined && levels.length === MOST_LEVELS) level = levels.at(-1);
    if (level === undefined) levels.push((level = { runs: [], end }));
    level.runs.push(run);
    level.end = Math.max(level.end, end);
  }
  return levels.map((level) => level.runs);
}

function barOf(run: TimelineRun, now: number, scale: Scale, level: number): GanttBar | null {
  const [start, end] = runStretch(run, now);
  if (end < scale.from || start > scale.from + scale.span) return null;
  const left = Math.max(0, position(scale, start));
  const right = Math.min(scale.width, position(scale, end));
  const width = Math.max(LEAST_WIDTH, right - left);
  const state = shownState(run);
  return {
    kind: kindOf(state),
    state,
    left,
    width,
    start,
    end,
    runs: [run],
    count: run.count,
    marks: [{ state, left, width }],
    level,
  };
}

export function position(scale: Scale, moment: number): number {
  return ((moment - scale.from) / scale.span) * scale.width;
}

/** How much a state matters when many runs share one bar: a failure must not hide behind successes. */
const WEIGHT: Record<string, number> = {
  failed: 9,
  missed: 8,
  expired: 7,
  errors: 6.5,
  running: 6,
  queued: 5,
  cancelled: 4,
  superseded: 3,
  skipped: 2,
};

/** The bars of a row, in the order of time. */
export function rowBars(stack: readonly TimelineRun[][], now: number, scale: Scale): GanttBar[] {
  return stack
    .flatMap((runs, level) => levelBars(runs, level, now, scale))
    .sort((left, right) => left.left - right.left);
}

/** The bars of a sub-row; those that would touch become one, so that a busy one stays cheap and readable. */
function levelBars(runs: readonly TimelineRun[], level: number, now: number, scale: Scale): GanttBar[] {
  const bars = runs
    .map((run) => barOf(run, now, scale, level))
    .filter((bar): bar is GanttBar => bar !== null)
    .sort((left, right) => left.left - right.left);
  const merged: GanttBar[] = [];
  for (const bar of bars) {
    const last = merged.at(-1);
    const overlap = last === undefined ? -Infinity : last.left + last.width - bar.left;
    const small = last !== undefined && (bar.width <= 6 || last.width <= 6);
    // The last sub-row takes what found no other: there also long ones overlap.
    if (last !== undefined && overlap > (small ? -1 : LEAST_WIDTH + 1)) join(last, bar);
    else merged.push(bar);
  }
  return merged.map(withLook);
}

/** Makes `first` hold `second` too. */
function join(first: GanttBar, second: GanttBar): void {
  first.width = Math.max(first.left + first.width, second.left + second.width) - first.left;
  first.end = Math.max(first.end, second.end);
  first.runs.push(...second.runs);
  first.marks.push(...second.marks);
  first.count += second.count;
}

/** A bar of many runs looks like most of them, and shows where something else happened. */
function withLook(bar: GanttBar): GanttBar {
  if (bar.runs.length === 1) return { ...bar, marks: [] };
  const counts = new Map<ShownState, number>();
  for (const run of bar.runs) counts.set(shownState(run), (counts.get(shownState(run)) ?? 0) + 1);
  const [state = "succeeded"] = [...counts].sort((one, other) => other[1] - one[1])[0] ?? [];
  const marks: BarMark[] = [];
  for (const mark of bar.marks) {
    const last = marks.at(-1);
    const inside = { ...mark, left: Math.min(mark.left - bar.left, bar.width - LEAST_WIDTH) };
    if (mark.state === state) continue;
    if (last === undefined || inside.left > last.left + last.width) marks.push(inside);
    else if ((WEIGHT[mark.state] ?? 1) > (WEIGHT[last.state] ?? 1)) last.state = mark.state;
  }
  return { ...bar, state, kind: kindOf(state), marks };
}

function kindOf(state: string): BarKind {
  if (state === "missed") return "missed";
  return state === "running" || state === "queued" ? "running" : "solid";
}

/** Future due times as dashed marks; those that would touch become a stretch with a count. */
export function dueBars(due: readonly number[], scale: Scale): GanttBar[] {
  const merged: GanttBar[] = [];
  for (const at of [...due].sort((left, right) => left - right)) {
    if (at < scale.from || at > scale.from + scale.span) continue;
    const bar: GanttBar = {
      kind: "due",
      state: "due",
      left: position(scale, at),
      width: 8,
      start: at,
      end: at,
      runs: [],
      count: 1,
      marks: [],
      level: 0,
    };
    const last = merged.at(-1);
    if (last !== undefined && bar.left < last.left + last.width + 2) join(last, bar);
    else merged.push(bar);
  }
  return merged;
}

/** Round moments of a zone's wall clock for the axis, at least `least` pixels from each other. `offsetAt` tells how far
 *  the zone is ahead of UTC at a moment: it changes within the window when clocks are put forward or back. */
export function axisTicks(scale: Scale, offsetAt: (moment: number) => number, least = 80): number[] {
  const step = TICKS.find((each) => (each / scale.span) * scale.width >= least) ?? 604_800_000;
  const end = scale.from + scale.span;
  const ticks: number[] = [];
  let wall = Math.ceil((scale.from + offsetAt(scale.from)) / step) * step;
  for (; ; wall += step) {
    const guess = wall - offsetAt(ticks.at(-1) ?? scale.from);
    const exact = wall - offsetAt(guess);
    // A time that the clock skips is the first moment after the gap, as the time after it is too.
    const at = exact + offsetAt(exact) === wall ? exact : guess;
    if (at > end) return ticks;
    if (at >= scale.from && at > (ticks.at(-1) ?? -Infinity)) ticks.push(at);
  }
}

/** Where a window of this span begins: with the now line at three quarters, or where somebody panned it to. */
export function windowStart(span: Span, at: number | null, now: number): number {
  return at ?? Math.round(now - SPANS[span] * 0.75);
}
