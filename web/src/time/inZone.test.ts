import { expect, it } from "vitest";
import { browserZone } from "@/state/zone";
import { inZone } from "@/time/inZone";

it("tells the times of a sentence in the zone that was chosen", () => {
  const now = Date.parse("2026-11-16T18:00:00Z");
  const sentence =
    "It did not run: run 7, due 2026-11-16 16:39:32 UTC and 2 more until 2026-11-15 03:00:00 UTC was missed.";
  expect(inZone(sentence, "America/New_York", now)).toBe(
    "It did not run: run 7, due 11:39:32 America/New_York and 2 more until 14 Nov 22:00:00 America/New_York was missed.",
  );
  expect(inZone("It is due next at 2026-11-16 19:00:00 UTC", browserZone(), now)).not.toContain(browserZone());
  expect(inZone("It is off.", "America/New_York", now)).toBe("It is off.");
});

it("tells the times that a server elsewhere names by its own clock", () => {
  const now = Date.parse("2026-11-16T18:00:00Z");
  const sentence = "lane 'cron' is paused since 2026-11-16 17:39:32 +01:00, until 2026-11-17 01:00:00 -05:30";
  expect(inZone(sentence, "UTC", now)).toMatch(/paused since 16:39:32( UTC)?, until tomorrow 06:30:00( UTC)?$/);
});
