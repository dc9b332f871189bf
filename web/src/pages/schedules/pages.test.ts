import { describe, expect, it } from "vitest";
import { sampleSchedule } from "@/testing/samples";
import { cursorsAfter, uniqueRows } from "./pages";

describe("pages of schedules", () => {
  it("keep what follows as long as a page ends where it ended", () => {
    const cursors = [null, "a", "b"];
    expect(cursorsAfter(cursors, 0, "a")).toBe(cursors);
    expect(cursorsAfter(cursors, 2, "c")).toBe(cursors);
  });

  it("drop what follows out of sight when a page ends elsewhere", () => {
    expect(cursorsAfter([null, "a", "b"], 0, "z")).toEqual([null]);
    expect(cursorsAfter([null, "a", "b"], 1, null)).toEqual([null, "a"]);
  });

  it("show a schedule once that is on two pages", () => {
    const [one, two, three] = [1, 2, 3].map((id) => sampleSchedule({ id }));
    const page = (...items: (typeof one)[]) => ({ items: items as NonNullable<typeof one>[], next: null });
    expect(uniqueRows([page(one, two), undefined, page(two, three)]).map((row) => row.id)).toEqual([1, 2, 3]);
  });
});
