/** Turns the activity of a day into the columns that the chart draws: pure, so that it can be tested. */

import type { ActivityBucket, Overview } from "@/api/types";
import { shownCounts, type ShownState } from "@/components/stateLook";

/** From the bottom of a column to its top. */
export const STACK: readonly ShownState[] = [
  "succeeded",
  "errors",
  "running",
  "queued",
  "skipped",
  "cancelled",
  "superseded",
  "missed",
  "expired",
  "failed",
];

export interface Activity {
  /** Seconds since 1970: the start of every bucket of the day, also of empty ones. */
  times: number[];
  buckets: Partial<Record<ShownState, number>>[];
  /** The states that occur, in the order of STACK. */
  states: ShownState[];
  totals: Map<ShownState, number>;
}

/** The start of the bucket that is being filled, in seconds. */
export function lastBucket({ now, bucket_seconds: size }: Pick<Overview, "bucket_seconds" | "now">): number {
  return Math.floor(Date.parse(now) / 1000 / size) * size;
}

/** The day up to and with the bucket that starts at `last`. */
export function activityOf(known: readonly ActivityBucket[], size: number, last: number): Activity {
  const first = last - 86_400 + size;
  const byTime = new Map(known.map((bucket) => [Math.floor(Date.parse(bucket.at) / 1000), shownCounts(bucket)]));
  const times: number[] = [];
  for (let time = first; time <= last; time += size) times.push(time);
  const buckets = times.map((time) => byTime.get(time) ?? {});
  const totals = new Map<ShownState, number>();
  for (const state of STACK) {
    const sum = buckets.reduce((before, bucket) => before + (bucket[state] ?? 0), 0);
    if (sum > 0) totals.set(state, sum);
  }
  return { times, buckets, states: [...totals.keys()], totals };
}

/** For each state, the height up to and with it: what lies on top is drawn first, and covered from below. */
export function stacked({ buckets, states }: Activity): number[][] {
  return states.map((_, place) =>
    buckets.map((bucket) => states.slice(0, place + 1).reduce((sum, state) => sum + (bucket[state] ?? 0), 0)),
  );
}
