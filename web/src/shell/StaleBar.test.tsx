import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { act, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LiveClient, setLiveClient } from "@/api/live";
import { ProblemError } from "@/api/problem";
import { StaleBar } from "@/shell/StaleBar";
import { alignClock } from "@/state/ticker";
import { zoneChoice } from "@/state/zone";

class Line {
  readyState = WebSocket.OPEN;
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  send(): void {}
  close(): void {
    this.onclose?.({ code: 1006 });
  }
}

let line: Line;
let client: LiveClient;

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-11-16T12:03:00Z") });
  zoneChoice.set("utc");
  client = new LiveClient({ open: () => (line = new Line()) as unknown as WebSocket });
  setLiveClient(client);
});
afterEach(() => {
  client.stop();
  alignClock(new Date().toISOString());
});

const show = (page = <StaleBar />, cache = new QueryClient()) =>
  render(<QueryClientProvider client={cache}>{page}</QueryClientProvider>);

function connect(): void {
  client.start();
  line.onopen?.();
  line.onmessage?.({ data: JSON.stringify({ type: "pong" }) });
}

it("a drop is told after a moment, with the time of it, and no more when the stream is back", async () => {
  connect();
  show();
  act(() => line.close());
  expect(screen.queryByRole("status")).toBeNull();
  act(() => vi.advanceTimersByTime(3000));
  expect(screen.getByRole("status").textContent).toContain("Stale since 12:03:00");
  await act(() => vi.advanceTimersByTimeAsync(1000));
  act(() => {
    line.onopen?.();
    line.onmessage?.({ data: JSON.stringify({ type: "pong" }) });
  });
  expect(screen.queryByRole("status")).toBeNull();
});

it.each([
  ["ahead of", "2026-11-16T11:53:00Z", "11:53:00"],
  ["behind", "2026-11-16T12:13:00Z", "12:13:00"],
])("a browser's clock that is %s the server's changes nothing", (_where, now, shown) => {
  alignClock(now);
  connect();
  show();
  act(() => line.close());
  act(() => vi.advanceTimersByTime(1000));
  expect(screen.queryByRole("status")).toBeNull();
  act(() => vi.advanceTimersByTime(2000));
  expect(screen.getByRole("status").textContent).toContain(`Stale since ${shown}`);
});

it("numbers that cannot be loaded anew are stale too, though the stream is there, until they can", async () => {
  let fault: ProblemError | null = null;
  const load = vi.fn(() => (fault === null ? Promise.resolve(1) : Promise.reject(fault)));
  function Page() {
    useQuery({ queryKey: ["lanes"], queryFn: load, retry: false, refetchInterval: 10_000 });
    return <StaleBar />;
  }
  connect();
  show(<Page />);
  await act(() => vi.advanceTimersByTimeAsync(1000));
  expect(screen.queryByRole("status")).toBeNull();
  fault = new ProblemError({ type: "about:blank", title: "no database", status: 503 });
  await act(() => vi.advanceTimersByTimeAsync(12_000));
  expect(screen.getByRole("status").textContent).toContain("Stale since 12:03:00");
  fault = null;
  await act(() => vi.advanceTimersByTimeAsync(5_000));
  expect(screen.queryByRole("status")).toBeNull();
});

it("that something is gone is an answer, and makes nothing stale", async () => {
  let gone = false;
  function Page() {
    useQuery({
      queryKey: ["schedules", "one", "a"],
      queryFn: () =>
        gone ? Promise.reject(new ProblemError({ type: "about:blank", title: "none", status: 404 })) : Promise.resolve(1),
      retry: false,
      refetchInterval: 1000,
    });
    return <StaleBar />;
  }
  connect();
  show(<Page />);
  await act(() => vi.advanceTimersByTimeAsync(500));
  gone = true;
  await act(() => vi.advanceTimersByTimeAsync(6000));
  expect(screen.queryByRole("status")).toBeNull();
});
