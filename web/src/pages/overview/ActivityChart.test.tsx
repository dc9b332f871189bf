import { render } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { ActivityChart } from "@/pages/overview/ActivityChart";
import { sampleOverview, sampleRun } from "@/testing/samples";

const made = vi.hoisted(() => ({ charts: 0, data: 0 }));

vi.mock("uplot", () => ({
  default: class {
    static paths = {};
    constructor() {
      made.charts += 1;
    }
    setData(): void {
      made.data += 1;
    }
    setSize(): void {}
    destroy(): void {}
  },
}));

beforeEach(() => {
  made.charts = 0;
  made.data = 0;
});

const overview = sampleOverview({ activity: [{ at: "2026-11-16T10:00:00Z", states: { succeeded: 3 }, with_errors: 0 }] });

it("the progress of a run draws no chart anew, and one that ended only changes its numbers", () => {
  const { rerender } = render(<ActivityChart overview={overview} />);
  const begun = { ...made };
  expect(begun.charts).toBe(1);
  for (let done = 1; done <= 20; done += 1) {
    const running = [sampleRun({ progress: { done, total: 20, text: "" } })];
    rerender(<ActivityChart overview={{ ...overview, running, now: `2026-11-16T10:05:${done + 10}Z` }} />);
  }
  expect(made).toEqual(begun);
  const activity = [{ at: "2026-11-16T10:00:00Z", states: { succeeded: 4 }, with_errors: 0 }];
  rerender(<ActivityChart overview={{ ...overview, activity }} />);
  expect(made).toEqual({ charts: 1, data: begun.data + 1 });
});
