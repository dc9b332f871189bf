// The arithmetic of the timeline: rows, bars, clusters of bars that would touch, and the ticks of its axis.

import type { DueStretch, Timeline, TimelineRun, TimelineStretch } from "@/api/types";
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

/** A run, or runs that ended alike and that the server counted as one stretch. */
export interface Piece {
  /** The only run that it is. */
  run: number | null;
  state: ShownState;
  start: number;
  end: number;
  runs: number;
  /** How many due times it stands for. */
  count: number;
  /** It took the time from start to end. */
  executed: boolean;
  /** It was counted, not listed: it has no sub-row of its own. */
  counted: boolean;
}

export interface GanttBar {
  kind: BarKind;
  state: string;
  left: number;
  width: number;
  start: number;
  end: number;
  pieces: Piece[];
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
  stretches: TimelineStretch[];
  due: number[];
  dueStretches: DueStretch[];
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
export function ganttRows({
  runs,
  stretches,
  due,
  due_stretches: dueStretches,
}: Pick<Timeline, "runs" | "stretches" | "due" | "due_stretches">): GanttRow[] {
  const rows = new Map<string, GanttRow>();
  const row = (name: string, loose: boolean): GanttRow => {
    const key = `${loose ? "task" : "schedule"}:${name}`;
    const found = rows.get(key) ?? { name, loose, runs: [], stretches: [], due: [], dueStretches: [] };
    rows.set(key, found);
    return found;
  };
  const rowOf = ({ schedule, task }: TimelineRun | TimelineStretch) =>
    row(schedule ?? task ?? "without a schedule", schedule === null);
  for (const run of runs) rowOf(run).runs.push(run);
  for (const stretch of stretches) rowOf(stretch).stretches.push(stretch);
  for (const each of due) row(each.schedule, false).due.push(Date.parse(each.at));
  for (const stretch of dueStretches) row(stretch.schedule, false).dueStretches.push(stretch);
  return [...rows.values()].sort(
    (left, right) => Number(left.loose) - Number(right.loose) || left.name.localeCompare(right.name),
  );
}

const EXECUTED: ReadonlySet<string> = new Set(["running", "succeeded", "failed"]);

/** What happened in a row: its runs, and what the server has only counted. */
export function piecesOf(row: Pick<GanttRow, "runs" | "stretches">, now: number): Piece[] {
  const listed = row.runs.map((run): Piece => {
    const [start, end] = runStretch(run, now);
    const executed = run.started_at !== null;
    return { run: run.id, state: shownState(run), start, end, runs: 1, count: run.count, executed, counted: false };
  });
  const counted = row.stretches.map((one): Piece => {
    const state = one.with_errors ? "errors" : one.state;
    const [start, end] = [Date.parse(one.from), Date.parse(one.to)];
    const executed = one.runs === 1 && EXECUTED.has(one.state);
    return { run: one.run, state, start, end, runs: one.runs, count: one.due_times, executed, counted: true };
  });
  return [...counted, ...listed];
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

/** The pieces of a row in sub-rows, so that none hides behind another: each goes into the first where the one before it
 *  has ended, and into the last where there is none. What overlaps by less than the narrowest bar is not seen to. What
 *  was counted is in the first. */
export function stackPieces(pieces: readonly Piece[], perPixel: number): Piece[][] {
  const unseen = LEAST_WIDTH * perPixel;
  const counted = pieces.filter((piece) => piece.counted);
  const levels: { pieces: Piece[]; end: number }[] = counted.length > 0 ? [{ pieces: counted, end: -Infinity }] : [];
  const listed = pieces.filter((piece) => !piece.counted);
  for (const piece of listed.sort((one, other) => one.start - other.start)) {
    let level = levels.find((each) => piece.start >= each.end - unseen);
    if (level === undefined && levels.length === MOST_LEVELS) level = levels.at(-1);
    if (level === undefined) levels.push((level = { pieces: [], end: piece.end }));
    level.pieces.push(piece);
    level.end = Math.max(level.end, piece.end);
  }
  return levels.map((level) => level.pieces);
}

function barOf(piece: Piece, scale: Scale, level: number): GanttBar | null {
  const { state, start, end, count } = piece;
  if (end < scale.from || start > scale.from + scale.span) return null;
  const left = Math.max(0, position(scale, start));
  const right = Math.min(scale.width, position(scale, end));
  const width = Math.max(LEAST_WIDTH, right - left);
  const marks = [{ state, left, width }];
  return { kind: kindOf(state), state, left, width, start, end, pieces: [piece], count, marks, level };
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
export function rowBars(stack: readonly Piece[][], scale: Scale): GanttBar[] {
  return stack
    .flatMap((pieces, level) => levelBars(pieces, level, scale))
    .sort((left, right) => left.left - right.left);
}

/** The bars of a sub-row; those that would touch become one, so that a busy one stays cheap and readable. */
function levelBars(pieces: readonly Piece[], level: number, scale: Scale): GanttBar[] {
  const bars = pieces
    .map((piece) => barOf(piece, scale, level))
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
  first.pieces.push(...second.pieces);
  first.marks.push(...second.marks);
  first.count += second.count;
}

/** How many runs of a bar are in which state. */
export function countsOf(bar: GanttBar, what: "runs" | "count" = "runs"): Map<ShownState, number> {
  const counts = new Map<ShownState, number>();
  for (const piece of bar.pieces) counts.set(piece.state, (counts.get(piece.state) ?? 0) + piece[what]);
  return counts;
}

/** The run that a bar is, if it is one only. */
export function onlyPiece(bar: GanttBar): Piece | null {
  const [piece] = bar.pieces;
  return piece !== undefined && bar.pieces.length === 1 && piece.runs === 1 ? piece : null;
}

/** A bar of many runs looks like most of them, and shows where something else happened. */
function withLook(bar: GanttBar): GanttBar {
  if (bar.pieces.length === 1) return { ...bar, marks: [] };
  const [state = "succeeded"] = [...countsOf(bar)].sort((one, other) => other[1] - one[1])[0] ?? [];
  return { ...bar, state, kind: kindOf(state), marks: marksOn(bar, state) };
}

const weightOf = (state: string): number => WEIGHT[state] ?? 1;

/** The marks on a bar that looks like `state`, in the order in which they are painted: what matters most is the last and
 *  on top. Each keeps its own stretch; only those of one state are joined where they touch. */
function marksOn(bar: GanttBar, state: ShownState): BarMark[] {
  const others = bar.marks.filter((mark) => mark.state !== state);
  // Where something lighter is painted on the bar, its own runs come back above it.
  const isCovered = others.some((mark) => weightOf(mark.state) < weightOf(state));
  const marks: BarMark[] = [];
  for (const mark of (isCovered ? [...bar.marks] : others).sort(
    (one, other) => weightOf(one.state) - weightOf(other.state) || one.left - other.left,
  )) {
    const last = marks.at(-1);
    const left = Math.min(mark.left - bar.left, bar.width - LEAST_WIDTH);
    if (last !== undefined && last.state === mark.state && left <= last.left + last.width)
      last.width = Math.max(last.left + last.width, left + mark.width) - last.left;
    else marks.push({ ...mark, left });
  }
  return marks;
}

function kindOf(state: string): BarKind {
  if (state === "missed") return "missed";
  return state === "running" || state === "queued" ? "running" : "solid";
}

const DUE_WIDTH = 8;

/** Future due times as dashed marks; those that would touch become a stretch with a count. */
export function dueBars({ due, dueStretches }: Pick<GanttRow, "due" | "dueStretches">, scale: Scale): GanttBar[] {
  const stretches = [
    ...due.map((at) => ({ start: at, end: at, count: 1 })),
    ...dueStretches.map((one) => ({ start: Date.parse(one.from), end: Date.parse(one.to), count: one.count })),
  ];
  const merged: GanttBar[] = [];
  for (const { start, end, count } of stretches.sort((left, right) => left.start - right.start)) {
    if (end < scale.from || start > scale.from + scale.span) continue;
    const left = Math.max(0, position(scale, start));
    const width = Math.max(DUE_WIDTH, Math.min(scale.width, position(scale, end)) - left);
    const bar: GanttBar = { kind: "due", state: "due", left, width, start, end, pieces: [], count, marks: [], level: 0 };
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
