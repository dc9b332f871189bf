import { describe, expect, it } from "vitest";
import { draftOf, firstDraft, isWhole, marker, textOf } from "./timingText";

describe("timing tabs", () => {
  it.each([
    "every 5m",
    "every 1h after finish",
    "at 2026-12-24T18:00",
    "in 30m",
    "daily 03:00",
    "weekly mon,thu 09:00",
    "monthly 1 09:00",
    "monthly last 18:00",
    "30 9 * * 1-5",
    "0 30 9 * * MON-FRI",
    "0 9 L * *",
    "@daily",
  ])("read %s and write the same text", (text) => {
    const draft = draftOf(text);
    expect(draft).not.toBeNull();
    expect(textOf(draft!)).toBe(text);
  });

  it.each([
    "daily 09:00 or daily 15:00",
    "every 5m jitter 30s",
    "weekdays 09:30 except 12-25",
    "daily 09:00 in Europe/Berlin",
    "evry 5m",
    "every 1h30m",
    "",
    "monthly 40 09:00",
  ])("leave %s to the text field", (text) => expect(draftOf(text)).toBeNull());

  it("put days in the order of the week and clocks in two digits", () => {
    expect(textOf(draftOf("weekly thu,mon 9:05")!)).toBe("weekly mon,thu 09:05");
    expect(textOf(draftOf("EVERY 5M")!)).toBe("every 5m");
  });

  it("begin empty, and cron with the same timing where it can say it", () => {
    expect(firstDraft("cron", draftOf("weekly mon,thu 09:30"))).toEqual({
      kind: "cron",
      expression: "30 9 * * mon,thu",
    });
    expect(firstDraft("cron", draftOf("monthly last 18:00"))).toEqual({ kind: "cron", expression: "0 18 L * *" });
    for (const kind of ["every", "at", "calendar", "cron"] as const) {
      expect(isWhole(firstDraft(kind, draftOf("every 5m")))).toBe(false);
    }
  });

  it("take an empty field of cron for any", () => {
    const draft = { kind: "cron", expression: "5    " } as const;
    expect([isWhole(draft), textOf(draft)]).toEqual([true, "5 * * * *"]);
  });
});

describe("marker", () => {
  it("stands below the word that is wrong", () => {
    expect(marker("daily 25:00 in UTC", 6)).toEqual({ text: "daily 25:00 in UTC", caret: "      ^^^^^" });
    expect(marker("every", 5)?.caret).toBe("     ^");
    expect(marker("x", null)).toBeNull();
  });
});
