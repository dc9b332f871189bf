import { describe, expect, it } from "vitest";
import type { Attempt, Run } from "@/api/types";
import { sampleRun } from "@/testing/samples";
import { leftText, phaseSeconds, phasesOf, secondsLeft, stepsAhead } from "./phases";

const base = sampleRun({ state: "queued", started_at: null, attempt: 0, node: null });
const attempt = (start: number, end: number | null, state: string): Attempt => ({
  started_at: new Date(Date.parse(base.due_at) + start * 1000).toISOString(),
  finished_at: end === null ? null : new Date(Date.parse(base.due_at) + end * 1000).toISOString(),
  state,
  error: null,
  node: "n1",
});
const now = Date.parse("2026-11-16T10:01:00Z");
const told = (run: Run) => phasesOf(run).map((phase) => [phase.label, phase.state, phaseSeconds(phase, now)]);

describe("phasesOf", () => {
  it("tells queued, running and done with the time each took", () => {
    const run: Run = {
      ...base,
      state: "succeeded",
      started_at: base.due_at,
      finished_at: "2026-11-16T10:00:12Z",
      attempts: [attempt(2, 12, "succeeded")],
    };
    expect(told(run)).toEqual([
      ["queued", "queued", 2],
      ["running", "succeeded", 10],
      ["succeeded", "succeeded", 0],
    ]);
  });

  it("goes on while it waits or runs", () => {
    expect(told(base)).toEqual([["queued", "queued", 60]]);
    const running: Run = {
      ...base,
      state: "running",
      started_at: "2026-11-16T10:00:30Z",
      attempts: [attempt(30, null, "running")],
    };
    expect(told(running)).toEqual([
      ["queued", "queued", 30],
      ["running", "running", 30],
    ]);
  });

  it("tells each attempt and the wait between them", () => {
    const run: Run = { ...base, state: "queued", attempts: [attempt(0, 5, "failed"), attempt(7, 9, "failed")] };
    expect(told(run).map(([label]) => label)).toEqual([
      "queued",
      "attempt 1",
      "waiting to retry",
      "attempt 2",
      "waiting to retry",
    ]);
  });

  it("ends without an attempt where nothing was executed", () => {
    const run: Run = { ...base, state: "skipped", finished_at: "2026-11-16T10:00:00Z" };
    expect(told(run)).toEqual([
      ["queued", "queued", 0],
      ["skipped", "skipped", 0],
    ]);
  });
});

describe("stepsAhead", () => {
  it("tells what has not come yet, until nothing is left to come", () => {
    expect(stepsAhead(base)).toEqual(["running", "done"]);
    expect(stepsAhead({ ...base, attempts: [attempt(0, 5, "failed")] })).toEqual(["attempt 2", "done"]);
    expect(stepsAhead({ ...base, state: "running" })).toEqual(["done"]);
    expect(stepsAhead({ ...base, state: "cancelled" })).toEqual([]);
  });
});

describe("time left", () => {
  it("goes on at the pace so far", () => {
    const progress = { done: 25, total: 100, text: "" };
    expect(secondsLeft(progress, "2026-11-16T10:00:00Z", now)).toBe(180);
    expect(leftText(180)).toBe("about 3 minutes left");
    expect(leftText(62)).toBe("about 1 minute left");
    expect(leftText(3)).toBe("a few seconds left");
    expect(leftText(7300)).toBe("about 2 hours left");
  });

  it("is not guessed when nobody can say", () => {
    expect(secondsLeft(null, base.due_at, now)).toBeNull();
    expect(secondsLeft({ done: 0, total: 100, text: "" }, base.due_at, now)).toBeNull();
    expect(secondsLeft({ done: 10, total: null, text: "" }, base.due_at, now)).toBeNull();
    expect(secondsLeft({ done: 100, total: 100, text: "" }, base.due_at, now)).toBeNull();
  });
});
