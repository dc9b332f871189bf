import { describe, expect, it } from "vitest";
import { sampleSchedule } from "@/testing/samples";
import { cursorsAfter, pagedRows } from "./pages";

describe("pages of schedules", () => {
  it("keep what follows as long as a page ends where it ended", () => {
    const cursors = [null, "a", "b"];
    expect(cursorsAfter(cursors, 0, "a", 0)).toBe(cursors);
    expect(cursorsAfter(cursors, 2, "c", 2)).toBe(cursors);
  });

  it("drop what follows out of sight when a page ends elsewhere", () => {
    expect(cursorsAfter([null, "a", "b"], 0, "z", 0)).toEqual([null]);
    expect(cursorsAfter([null, "a", "b"], 1, null, 2)).toEqual([null, "a"]);
  });

  it("go on in sight where the page before them ends now, so that no row falls between the two", () => {
    expect(cursorsAfter([null, "a", "b"], 0, "z", 1)).toEqual([null, "z"]);
  });

  it("show a schedule once that is on two pages: its newest copy, with the page that it came with", () => {
    const row = (id: number, failures = 0) => sampleSchedule({ id, failures });
    const page = (at: number, ...items: ReturnType<typeof row>[]) => ({ page: { items, next: null }, at });
    const shown = (...pages: Parameters<typeof pagedRows>[0]) =>
      pagedRows(pages).map((each) => [each.schedule.id, each.schedule.failures, each.page]);
    const nothing = { page: undefined, at: 0 };
    expect(shown(page(5, row(1), row(2)), nothing, page(9, row(2, 7), row(3)))).toEqual([
      [1, 0, 0],
      [2, 7, 2],
      [3, 0, 2],
    ]);
    expect(shown(page(9, row(1), row(2)), page(5, row(2, 7), row(3)))).toEqual([
      [1, 0, 0],
      [2, 0, 0],
      [3, 0, 1],
    ]);
  });
});
