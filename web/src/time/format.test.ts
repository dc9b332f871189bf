import { describe, expect, it } from "vitest";
import { counted, dayOf, formatDuration, formatFull, formatRelative, formatTime, listed, shownOf } from "@/time/format";

const at = (text: string): number => Date.parse(text);

describe("a moment", () => {
  const now = at("2026-11-16T10:00:00Z");

  it("of today is told by its clock in the zone", () => {
    expect(formatTime(at("2026-11-16T13:03:05Z"), "Europe/Berlin", now)).toBe("14:03");
    expect(formatTime(at("2026-11-16T13:03:05Z"), "UTC", now, true)).toBe("13:03:05");
  });

  it("belongs to the day of its zone, not of UTC", () => {
    expect(formatTime(at("2026-11-16T23:30:00Z"), "Europe/Berlin", now)).toBe("tomorrow 00:30");
    expect(dayOf(at("2026-11-16T23:30:00Z"), "Europe/Berlin")).toBe("2026-11-17");
    expect(dayOf(at("2026-11-16T23:30:00Z"), "America/New_York")).toBe("2026-11-16");
  });

  it("further away is told with its day, and with its year when that is another", () => {
    expect(formatTime(at("2026-11-15T09:00:00Z"), "UTC", now)).toBe("yesterday 09:00");
    expect(formatTime(at("2026-12-03T18:00:00Z"), "UTC", now)).toBe("3 Dec 18:00");
    expect(formatTime(at("2027-01-02T18:00:00Z"), "UTC", now)).toBe("2 Jan 2027 18:00");
  });

  it("in full names its zone, and summer is not winter", () => {
    expect(formatFull(at("2026-11-16T13:03:05Z"), "Europe/Berlin")).toMatch(
      /^Mon,? 16 Nov 2026, 14:03:05 (CET|GMT\+1) \(Europe\/Berlin\)$/,
    );
    expect(formatFull(at("2026-07-16T13:03:05Z"), "Europe/Berlin")).toContain("15:03:05");
    expect(formatFull(at("2026-11-16T13:03:05Z"), "UTC")).toMatch(/13:03:05 UTC$/);
  });

  it("in a zone that the browser does not know is shown in UTC and says so", () => {
    expect(formatTime(at("2026-11-16T13:03:05Z"), "Mars/Olympus", now)).toBe("13:03 UTC");
  });
});

it.each([
  [0.0004, "0 ms"],
  [0.85, "850 ms"],
  [1, "1 s"],
  [4.24, "4.2 s"],
  [12.6, "13 s"],
  [252, "4 m 12 s"],
  [3900, "1 h 05 m"],
  [183_600, "2 d 3 h"],
  [-5, "-5 s"],
])("%d seconds are %s", (seconds, words) => {
  expect(formatDuration(seconds)).toBe(words);
});

it.each([
  [252_000, "in 4 m 12 s"],
  [0, "now"],
  [-61_000, "1 m 01 s ago"],
])("%d milliseconds from now is %s", (distance, words) => {
  expect(formatRelative(1_000_000 + distance, 1_000_000)).toBe(words);
});

it("tells how many of all are shown when it is not all", () => {
  expect([shownOf(5, 12345), shownOf(1200, 1200)]).toEqual(["5 of 12,345", "1,200"]);
});

it("one of a thing has no s", () => {
  expect([counted(1, "run"), counted(0, "run"), counted(12345, "run")]).toEqual(["1 run", "0 runs", "12,345 runs"]);
});

it("lists names in a sentence, of many the first few", () => {
  expect([listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])]).toEqual(["a", "a and b", "a, b and c"]);
  expect(listed(["a", "b", "c", "d", "e", "f", "g"])).toBe("a, b, c, d, e and 2 more");
});
