import { describe, expect, it } from "vitest";
import { dateText, daysUntil, inOrder, isPast, nextDate, readDate, readDates } from "./dates";

describe("a date of a calendar", () => {
  it.each([
    ["2026-12-24", "2026-12-24"],
    ["2027-1-5", "2027-01-05"],
    ["12-24", "12-24"],
    ["2-29", "02-29"],
    ["2028-02-29", "2028-02-29"],
    ["2000-02-29", "2000-02-29"],
  ])("%s is %s", (text, date) => expect(readDate(text)).toBe(date));

  it.each(["", "2027-02-29", "2100-02-29", "2026-13-01", "2026-00-01", "2026-04-31", "12-00", "12-32", "0000-01-01", "26-12-24", "24.12.2026", "12/24"])(
    "%s is none",
    (text) => expect(readDate(text)).toBeUndefined(),
  );
});

describe("what people paste", () => {
  it("is dates on lines, behind commas, semicolons and spaces, each once and in order", () => {
    const { dates, left, problem } = readDates(" 2027-03-26\n12-24, 12-31;1-1\n\n2026-12-24 2026-12-31\t2027-03-26,\r\n");
    expect(dates).toEqual(["01-01", "12-24", "12-31", "2026-12-24", "2026-12-31", "2027-03-26"]);
    expect([left, problem]).toEqual([[], null]);
  });

  it("is told what is no date, and keeps it", () => {
    const { dates, left, problem } = readDates("2026-12-24\nChristmas\n2026-02-30, soon\nx, y");
    expect(dates).toEqual(["2026-12-24"]);
    expect(left).toEqual(["Christmas", "2026-02-30", "soon", "x", "y"]);
    expect(problem?.message).toBe("These are no dates: “Christmas”, “2026-02-30”, “soon” and 2 more.");
    expect(problem?.hint).toBe("Write each as 2026-12-24, or as 12-24 for every year.");
  });

  it.each([
    ["24.12.2026", "2026-12-24"],
    ["1. 5. 2027", "2027-05-01"],
    ["24.12.", "12-24"],
    ["2026/12/24", "2026-12-24"],
  ])("%s is probably %s", (text, right) => {
    const { problem } = readDates(text);
    expect(problem?.message).toBe(`There is no date “${text}”.`);
    expect(problem?.hint).toContain(`Did you mean ${right}?`);
  });

  it.each(["12/24/2026", "31.02.2026", "2026-02-30"])("%s may be anything", (text) => {
    expect(readDates(text).problem?.hint).toBe("Write each as 2026-12-24, or as 12-24 for every year.");
  });
});

describe("the next date", () => {
  it.each([
    [["2026-12-24", "2026-11-19"], "2026-11-19"],
    [["2026-11-18", "12-24"], "2026-12-24"],
    [["11-18"], "2027-11-18"],
    [["02-29"], "2028-02-29"],
    [["2026-11-18"], undefined],
    [[], undefined],
  ])("of %j is %s", (dates, next) => expect(nextDate(dates, "2026-11-19")).toBe(next));

  it("of 29 February passes over a century that has none", () => {
    expect(nextDate(["02-29"], "2096-03-01")).toBe("2104-02-29");
  });

  it("is told with its weekday and how far away it is", () => {
    expect([dateText("2026-12-24"), dateText("12-24")]).toEqual(["Thu 2026-12-24", "12-24 every year"]);
    const far = ["2026-11-19", "2026-11-20", "2026-12-24"].map((date) => daysUntil(date, "2026-11-19"));
    expect(far).toEqual(["today", "tomorrow", "in 35 days"]);
  });

  it("is never one of the past, and what is of every year never passes", () => {
    expect([isPast("2026-11-18", "2026-11-19"), isPast("2026-11-19", "2026-11-19"), isPast("01-01", "2026-11-19")]).toEqual(
      [true, false, false],
    );
    expect(inOrder(["2026-01-01", "12-24", "2026-01-01"])).toEqual(["12-24", "2026-01-01"]);
  });
});
