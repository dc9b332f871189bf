import { act, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { type Connection, LiveClient, setLiveClient } from "@/api/live";
import { StaleBar } from "@/shell/StaleBar";
import { zoneChoice } from "@/state/zone";

it("a drop is told after a moment, with the time of it, and no more when the stream is back", () => {
  vi.useFakeTimers({ now: new Date("2026-11-16T12:03:00Z") });
  zoneChoice.set("utc");
  const client = new LiveClient();
  let connection: Connection = { state: "live", since: null };
  let tell: () => void = () => undefined;
  client.getConnection = () => connection;
  client.onConnection = (listener) => {
    tell = listener;
    return () => undefined;
  };
  setLiveClient(client);
  render(<StaleBar />);

  connection = { state: "stale", since: Date.now() };
  act(() => tell());
  expect(screen.queryByRole("status")).toBeNull();
  act(() => vi.advanceTimersByTime(3000));
  expect(screen.getByRole("status").textContent).toContain("Stale since 12:03:00");

  connection = { state: "live", since: null };
  act(() => tell());
  expect(screen.queryByRole("status")).toBeNull();
});
