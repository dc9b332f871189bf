import { describe, expect, it } from "vitest";
import { askedSpan, panned, searchOf, windowOf, zoomed } from "./window";

const now = Date.parse("2026-11-16T12:00:00Z");

describe("the window in the URL", () => {
  it("comes back as it was, and is empty while it follows the time", () => {
    expect(searchOf(windowOf({}))).toEqual({ span: undefined, at: undefined });
    const moved = windowOf({ span: "1h", at: "2026-11-16T09:00:00Z" });
    expect(searchOf(moved)).toEqual({ span: "1h", at: "2026-11-16T09:00:00Z" });
    expect(windowOf({ span: "9y", at: "yesterday" })).toEqual({ span: "24h", at: null });
  });

  it("asks for a quarter of a span more on both sides, and for the same when it is panned a little", () => {
    const window = windowOf({ span: "1h", at: "2026-11-16T09:00:00Z" });
    expect(askedSpan(window, now)).toEqual({ from: "2026-11-16T08:45:00.000Z", to: "2026-11-16T10:15:00.000Z" });
    const little = panned(window, 60_000, now);
    expect(askedSpan(little, now).from).toBe("2026-11-16T08:45:00.000Z");
  });

  it("keeps its middle when it is zoomed, and its now line at three quarters when it follows", () => {
    expect(zoomed(windowOf({ span: "1h", at: "2026-11-16T09:00:00Z" }), "6h").at).toBe(
      Date.parse("2026-11-16T06:30:00Z"),
    );
    expect(zoomed(windowOf({}), "1h")).toEqual({ span: "1h", at: null });
    expect(panned(windowOf({ span: "1h" }), 0, now).at).toBe(Date.parse("2026-11-16T11:15:00Z"));
  });
});
