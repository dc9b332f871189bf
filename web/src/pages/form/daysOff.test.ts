import { describe, expect, it } from "vitest";
import { calendarsIn, calendarText, splitDaysOff, whyNoDaysOff, withCalendar, withoutCalendar } from "./daysOff";

describe("the calendars of a timing", () => {
  it.each([
    ["daily 09:00", []],
    ["daily 09:00 except calendar(office)", ["office"]],
    ['daily 09:00 except calendar( "sales team" ) except calendar(office) except calendar(office)', ["sales team", "office"]],
    ["(daily 09:00 except calendar(a)) or daily 15:00 except calendar(b)", ["a", "b"]],
    [String.raw`daily 09:00 except calendar("a \"b\"")`, ['a "b"']],
    ["daily 09:00 except calendar(", []],
    [String.raw`daily 09:00 except calendar("\x")`, []],
    ['after "x calendar(office)"', []],
  ])("in %s are %j", (text, names) => expect(calendarsIn(text)).toEqual(names));

  it.each([
    ["daily 09:00 ", "office", "daily 09:00 except calendar(office)"],
    ["daily 09:00 except 12-25", "sales team", 'daily 09:00 except 12-25 except calendar("sales team")'],
    ["daily 09:00 until 10 runs", "office", "daily 09:00 except calendar(office) until 10 runs"],
    ["daily 09:00", "a(b)", 'daily 09:00 except calendar("a(b)")'],
  ])("%s takes %s, and gives it back", (text, name, taken) => {
    expect(withCalendar(text, name)).toBe(taken);
    expect(withoutCalendar(taken, name)).toBe(text.trim());
    expect(withoutCalendar(taken, "another")).toBe(taken);
  });

  it("are not for what has no days of its own", () => {
    expect(whyNoDaysOff("daily 09:00")).toBeUndefined();
    for (const text of ["", "after import", "every 1h after finish"]) expect(whyNoDaysOff(text)).toBeTruthy();
  });

  it.each([
    ["daily 09:00", ["daily 09:00", ""]],
    ["daily 09:00 except calendar(office)", ["daily 09:00", " except calendar(office)"]],
    [
      `daily 09:00 except holidays(DE-BY) except ${calendarText("sales team")} `,
      ["daily 09:00", ' except holidays(DE-BY) except calendar("sales team")'],
    ],
    ["daily 09:00 except 12-25", ["daily 09:00 except 12-25", ""]],
  ])("stand behind %s", (text, parts) => expect(splitDaysOff(text)).toEqual(parts));
});
