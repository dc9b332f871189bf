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
