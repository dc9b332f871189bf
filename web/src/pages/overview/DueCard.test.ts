import { expect, it } from "vitest";
import { bySchedule } from "@/pages/overview/DueCard";

it("a schedule that is due often stands once, and hides no other", () => {
  const at = (minute: number) => `2026-11-16T10:0${minute}:00Z`;
  const due = [
    { schedule: "often", at: at(0), zone: "UTC" },
    { schedule: "often", at: at(1), zone: "UTC" },
    { schedule: "seldom", at: at(2), zone: "UTC" },
    { schedule: "often", at: at(3), zone: "UTC" },
  ];
  expect(bySchedule(due)).toEqual([
    { schedule: "often", at: at(0), zone: "UTC", times: 3 },
    { schedule: "seldom", at: at(2), zone: "UTC", times: 1 },
  ]);
});
