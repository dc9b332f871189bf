import { expect, it } from "vitest";
import { fuzzy } from "./fuzzy";

it.each([
  ["nightly backup", "nbak", true],
  ["nightly backup", "back night", true],
  ["nightly backup", "backpu", false],
  ["Timeline", "tml", true],
  ["sync-stock", "ss", true],
  ["Overview", "x", false],
])("%s has %s: %s", (text, typed, found) => {
  expect(fuzzy(text, typed) !== null).toBe(found);
});

it("finds whole words and beginnings before letters here and there", () => {
  const order = ["carbackpacks", "b-a-c-k", "backup", "my backup"];
  const best = order.sort((one, other) => (fuzzy(one, "back") ?? 99) - (fuzzy(other, "back") ?? 99));
  expect(best.slice(0, 2).sort()).toEqual(["backup", "my backup"]);
  expect(best.at(-1)).toBe("b-a-c-k");
});
