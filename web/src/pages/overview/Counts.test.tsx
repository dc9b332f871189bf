import { expect, it } from "vitest";
import { screen } from "@testing-library/react";
import { renderPage } from "@/testing/render";
import { sampleOverview } from "@/testing/samples";
import { Counts } from "./Counts";

it("groups the digits of large numbers", async () => {
  const overview = sampleOverview();
  const counts = { ...overview.counts, schedules: 12000, on: 10000, queued: 1234 };
  renderPage(() => <Counts overview={{ ...overview, counts }} />);
  expect((await screen.findByText("Schedules on")).parentElement?.textContent).toBe("Schedules on10,000 of 12,000");
  expect(screen.getByText("Queued").parentElement?.textContent).toBe("Queued1,234");
});

it("counts what succeeded with errors beside what failed", async () => {
  const bucket = { at: "2026-11-16T10:00:00Z", states: { succeeded: 4, failed: 2 }, with_errors: 3 };
  renderPage(() => <Counts overview={sampleOverview({ activity: [bucket, { ...bucket, with_errors: 0 }] })} />);
  expect((await screen.findByText("Failed, 24 h")).parentElement?.textContent).toBe("Failed, 24 h4 + 3 with errors");
});
