import { expect, it } from "vitest";
import { activityOf, lastBucket, stacked } from "@/pages/overview/activity";

const known = [
  { at: "2026-11-15T10:15:00Z", states: { succeeded: 2 }, with_errors: 0 },
  { at: "2026-11-16T10:00:00Z", states: { failed: 1, succeeded: 4 }, with_errors: 0 },
];
const activity = activityOf(known, 900, lastBucket({ now: "2026-11-16T10:07:00Z", bucket_seconds: 900 }));

it("the day has all its buckets, also the empty ones, up to the one that is now", () => {
  const { times, buckets, totals } = activity;
  expect(times).toHaveLength(96);
  expect(times[95]).toBe(Date.parse("2026-11-16T10:00:00Z") / 1000);
  expect([buckets[0], buckets[1], buckets[95]]).toEqual([{ succeeded: 2 }, {}, { failed: 1, succeeded: 4 }]);
  expect([...totals]).toEqual([
    ["succeeded", 6],
    ["failed", 1],
  ]);
});

it("each state stands on those below it", () => {
  const [succeeded, failed] = stacked(activity);
  expect([succeeded?.[95], failed?.[95]]).toEqual([4, 5]);
});

it("what succeeded with errors is a part of the column of its own, on top of what simply succeeded", () => {
  const bucket = { at: "2026-11-16T10:00:00Z", states: { failed: 1, succeeded: 4 }, with_errors: 3 };
  const { states, totals } = activityOf([bucket], 900, lastBucket({ now: "2026-11-16T10:07:00Z", bucket_seconds: 900 }));
  expect(states).toEqual(["succeeded", "errors", "failed"]);
  expect([...totals.values()]).toEqual([1, 3, 1]);
});
