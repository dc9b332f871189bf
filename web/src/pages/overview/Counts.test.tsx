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
