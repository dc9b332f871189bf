// The arithmetic of the sparkline: how high each bar is, and the sentence that says the same in words.

import type { RecentRun } from "@/api/types";
import { look, type ShownState, shownState } from "@/components/stateLook";

export interface SparklineBar {
  run: RecentRun;
  x: number;
  y: number;
  height: number;
}

/** How far the bar of a failed run reaches below the line that the others stand on: seen without its colour, too. */
export const FOOT = 3;
const LEAST = 0.22;
const MIDDLE = 0.6;

/** A height of 0..1 for each run: by the logarithm of its time, so that one long run does not flatten the others. */
export function barHeights(runs: readonly RecentRun[]): number[] {
  const scaled = runs.map((run) => (run.seconds === null ? null : Math.log1p(Math.max(0, run.seconds) * 10)));
  const known = scaled.filter((value): value is number => value !== null);
  const low = Math.min(...known);
  const high = Math.max(...known);
  return scaled.map((value) => {
    if (value === null) return LEAST;
    // Runs that all take the same are drawn the same, not at random heights.
    if (high - low < 0.2) return MIDDLE;
    return LEAST + ((value - low) / (high - low)) * (1 - LEAST);
  });
}

/** The bars of the last `slots` runs, the newest at the right edge. */
export function sparklineBars(
  runs: readonly RecentRun[],
  slots: number,
  pitch: number,
  height: number,
): SparklineBar[] {
  const shown = runs.slice(-slots);
  const heights = barHeights(shown);
  const line = height - FOOT;
  const first = slots - shown.length;
  return shown.map((run, index) => {
    const bar = Math.max(2, Math.round((heights[index] ?? LEAST) * line));
    const foot = run.state === "failed" ? FOOT : 0;
    return { run, x: (first + index) * pitch, y: line - bar, height: bar + foot };
  });
}

/** The bars of each state as one path: a list draws forty sparklines, and few shapes are quick. Below one with errors is
 *  a dot, below the line where what failed hangs: seen without its colour, too. */
export function statePaths(bars: readonly SparklineBar[], width: number): { state: ShownState; path: string }[] {
  const paths = new Map<ShownState, string>();
  for (const bar of bars) {
    const state = shownState(bar.run);
    const dot = state === "errors" ? `M${bar.x} ${bar.y + bar.height + 1}h${width}v${FOOT - 1}h-${width}z` : "";
    const shape = `M${bar.x} ${bar.y}h${width}v${bar.height}h-${width}z${dot}`;
    paths.set(state, (paths.get(state) ?? "") + shape);
  }
  return [...paths].map(([state, path]) => ({ state, path }));
}

/** The bar at this share (0..1) of the width; null beside all of them. */
export function barAt(bars: readonly SparklineBar[], share: number, slots: number): SparklineBar | null {
  const slot = Math.floor(share * slots);
  return bars[slot - (slots - bars.length)] ?? null;
}

/** `Last 60 runs: 57 succeeded, 3 failed.` */
export function sparklineSummary(runs: readonly RecentRun[]): string {
  if (runs.length === 0) return "No runs yet.";
  const counts = new Map<string, number>();
  for (const run of runs) {
    const { label } = look(shownState(run));
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  const parts = [...counts].sort((left, right) => right[1] - left[1]).map(([label, count]) => `${count} ${label}`);
  return `Last ${runs.length === 1 ? "run" : `${runs.length} runs`}: ${parts.join(", ")}.`;
}
