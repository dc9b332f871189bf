import { act, render, screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { Countdown, Time } from "@/components/Time";
import { alignClock } from "@/state/ticker";
import { zoneChoice } from "@/state/zone";

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-11-16T10:00:00Z") });
  alignClock("2026-11-16T10:00:00Z");
  zoneChoice.set("utc");
});

const shown = (): string => screen.getByRole("time").textContent ?? "";

it("a countdown ticks once a second, through zero", () => {
  render(<Countdown to="2026-11-16T10:00:02Z" />);
  expect(shown()).toBe("in 2 s");
  act(() => vi.advanceTimersByTime(1000));
  expect(shown()).toBe("in 1 s");
  act(() => vi.advanceTimersByTime(1000));
  expect(shown()).toBe("now");
  act(() => vi.advanceTimersByTime(60_000));
  expect(shown()).toBe("1 m 00 s ago");
});

it("all countdowns share one timer, and without one there is none", () => {
  const view = render(
    <>
      <Countdown to="2026-11-16T11:00:00Z" />
      <Countdown to="2026-11-16T12:00:00Z" />
    </>,
  );
  expect(vi.getTimerCount()).toBe(1);
  view.unmount();
  expect(vi.getTimerCount()).toBe(0);
});

it("a countdown counts by the server's clock when ours is wrong", () => {
  alignClock("2026-11-16T10:00:30Z");
  render(<Countdown to="2026-11-16T10:01:00Z" />);
  expect(shown()).toBe("in 30 s");
});

it("a time follows the choice of zone, and tells all of itself in its title", () => {
  render(<Time at="2026-11-16T13:03:05Z" zone="Asia/Tokyo" />);
  expect(shown()).toBe("13:03");
  act(() => zoneChoice.set("schedule"));
  expect(shown()).toBe("22:03");
  expect(screen.getByRole("time").title).toContain("(Asia/Tokyo)");
  expect(screen.getByRole("time").getAttribute("datetime")).toBe("2026-11-16T13:03:05Z");
});
