/** Turns the activity of a day into the columns that the chart draws: pure, so that it can be tested. */

import type { ActivityBucket, Overview, RunState } from "@/api/types";

/** From the bottom of a column to its top. */
export const STACK: readonly RunState[] = [
  "succeeded",
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
  buckets: Partial<Record<RunState, number>>[];
  /** The states that occur, in the order of STACK. */
  states: RunState[];
  totals: Map<RunState, number>;
}

export function activityOf(overview: Pick<Overview, "activity" | "bucket_seconds" | "now">): Activity {
  const size = overview.bucket_seconds;
  const last = Math.floor(Date.parse(overview.now) / 1000 / size) * size;
  const first = last - 86_400 + size;
  const byTime = new Map<number, ActivityBucket["states"]>(
    overview.activity.map((bucket) => [Math.floor(Date.parse(bucket.at) / 1000), bucket.states]),
  );
  const times: number[] = [];
  for (let time = first; time <= last; time += size) times.push(time);
  const buckets = times.map((time) => byTime.get(time) ?? {});
  const totals = new Map<RunState, number>();
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
