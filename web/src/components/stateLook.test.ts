import { expect, it } from "vitest";
import { look, shownCounts, shownState, STATES } from "./stateLook";

it("a run that succeeded with errors has a look of its own, and no other cause has", () => {
  expect(shownState({ state: "succeeded", cause: "errors" })).toBe("errors");
  expect(shownState({ state: "succeeded", cause: null })).toBe("succeeded");
  expect(shownState({ state: "succeeded" })).toBe("succeeded");
  expect(shownState({ state: "failed", cause: "raised" })).toBe("failed");
  expect(look("errors").icon).not.toBe(look("succeeded").icon);
});

it("is no state that one could ask the server for", () => {
  expect(STATES).toHaveLength(9);
  expect(STATES).not.toContain("errors");
});

it("is counted apart from what simply succeeded", () => {
  expect(shownCounts({ states: { succeeded: 4, failed: 1 }, with_errors: 3 })).toEqual({
    succeeded: 1,
    errors: 3,
    failed: 1,
  });
  expect(shownCounts({ states: { succeeded: 3 }, with_errors: 3 })).toEqual({ errors: 3 });
  expect(shownCounts({ states: { succeeded: 3 }, with_errors: 0 })).toEqual({ succeeded: 3 });
});
