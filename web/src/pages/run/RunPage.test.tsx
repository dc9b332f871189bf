import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LiveClient, setLiveClient } from "@/api/live";
import type { Run } from "@/api/types";
import { renderPage } from "@/testing/render";
import { problem, stubServer } from "@/testing/server";
import { RunPage } from "./RunPage";

/** A socket that the test speaks through. */
class Line {
  readyState = WebSocket.OPEN;
  sent: Record<string, unknown>[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }
  close(): void {
    this.onclose?.();
  }
  tell(message: unknown): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

let line: Line;
let client: LiveClient;

beforeEach(() => {
  line = new Line();
  client = new LiveClient({ open: () => line as unknown as WebSocket });
  setLiveClient(client);
  // happy-dom lays nothing out: the view of the output has a height all the same.
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(400);
});
afterEach(() => client.stop());

const run: Run = {
  id: 7,
  schedule: "backup",
  schedule_id: 1,
  task: null,
  state: "running",
  reason: null,
  trigger: "manual",
  due_at: "2026-11-16T10:00:00Z",
  last_due_at: null,
  count: 1,
  ready_at: "2026-11-16T10:00:00Z",
  started_at: "2026-11-16T10:00:01Z",
  finished_at: null,
  attempt: 1,
  attempts: [{ started_at: "2026-11-16T10:00:01Z", finished_at: null, state: "running", error: null, node: "n1" }],
  totals: { copied: 12, errors: 1 },
  progress: { done: 3, total: 4, text: "copying" },
  result: null,
  error: null,
  lane: "cron",
  priority: 0,
  session: null,
  project: null,
  key: "run-7",
  node: "n1",
  work: {
    kind: "http",
    method: "GET",
    url: "https://example.com",
    headers: {},
    json: null,
    body: null,
    expect: ["2xx"],
  },
  zone: "UTC",
} as Run;
const said = (number: number, text: string) => ({ number, at: null, line: text });
const open = () => renderPage(RunPage, { route: "/runs/$id", at: "/runs/7" });

describe("the page of a run", () => {
  it("goes on with the output where the first answer ended, and shows each line once", async () => {
    stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": { lines: [said(1, "first"), said(2, "\u001b[31msecond\u001b[0m <b>")], ended: false },
    });
    client.start();
    act(() => line.onopen?.());
    open();
    expect(await screen.findByText("second")).toBeTruthy();
    expect(screen.getByText("<b>", { exact: false })).toBeTruthy();
    await waitFor(() => expect(line.sent).toContainEqual({ type: "subscribe", topic: "output:7", cursor: "2" }));
    act(() =>
      line.tell({ type: "lines", topic: "output:7", cursor: "3", lines: [said(2, "second"), said(3, "third")] }),
    );
    expect(await screen.findByText("third")).toBeTruthy();
    expect(screen.getByText("3 lines")).toBeTruthy();
  });

  it("searches the output", async () => {
    stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": { lines: [said(1, "an Error"), said(2, "fine"), said(3, "error again")], ended: false },
    });
    open();
    await screen.findByText("fine");
    await userEvent.type(screen.getByLabelText("Search the output"), "error");
    expect(await screen.findByText("2 matches")).toBeTruthy();
    await userEvent.keyboard("{Enter}{Enter}");
    expect(screen.getByText("2 of 2")).toBeTruthy();
  });

  it("shows progress, totals and what it does, and cancels with a reason", async () => {
    const asked = stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": { lines: [], ended: false },
      "POST /api/runs/7/cancel": { ...run, state: "cancelled" },
    });
    open();
    expect(await screen.findByText("3 of 4 · 75 %")).toBeTruthy();
    expect(screen.getByText("GET https://example.com")).toBeTruthy();
    await userEvent.click(screen.getByText("Cancel"));
    await userEvent.type(await screen.findByLabelText("Reason (optional)"), "wrong shop");
    await userEvent.click(screen.getByText("Cancel the run"));
    await waitFor(() => expect(asked.find((each) => each.method === "POST")?.body).toEqual({ reason: "wrong shop" }));
  });

  it("is being cancelled from the click until it has ended", async () => {
    stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": { lines: [], ended: false },
      "POST /api/runs/7/cancel": run,
    });
    const { cache } = open();
    await userEvent.click(await screen.findByText("Cancel"));
    await userEvent.click(await screen.findByText("Cancel the run"));
    const button = await screen.findByRole("button", { name: "Cancelling…" });
    expect(button.getAttribute("aria-disabled")).toBe("true");
    expect(screen.getByRole("heading", { level: 1 }).textContent).toBe("Run 7 cancelling…");
    act(() => cache.setQueryData(["runs", "one", 7], { ...run, state: "cancelled" }));
    await waitFor(() => expect(screen.getByRole("heading", { level: 1 }).textContent).toBe("Run 7 cancelled"));
    expect(screen.getByText("Retry")).toBeTruthy();
  });

  it("says how much of a long output was cut", async () => {
    const lines = [said(1, "first"), { number: null, at: null, line: "… 5 lines were cut …" }, said(7, "last")];
    stubServer({ "GET /api/runs/7": run, "GET /api/runs/7/lines": { lines, ended: false } });
    open();
    expect(await screen.findByText("2 of 7 lines, the rest was cut")).toBeTruthy();
  });

  it("that does not exist leads to the list", async () => {
    stubServer({ "GET /api/runs/7": problem(404, "there is no run 7") });
    open();
    expect(await screen.findByText("there is no run 7")).toBeTruthy();
    expect(screen.getByRole("heading", { level: 1 })).toBeTruthy();
    expect(screen.getByRole("link", { name: "All runs" }).getAttribute("href")).toBe("/runs");
  });

  it("goes to the new run after a retry", async () => {
    const failed = {
      ...run,
      state: "failed",
      finished_at: "2026-11-16T10:00:05Z",
      error: "Traceback\n  boom",
      progress: null,
    } as Run;
    stubServer({
      "GET /api/runs/7": failed,
      "GET /api/runs/7/lines": { lines: [], ended: true },
      "POST /api/runs/7/retry": { ...run, id: 8 },
    });
    const { router } = open();
    expect(await screen.findByText(/boom/)).toBeTruthy();
    await userEvent.click(screen.getByText("Retry"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/runs/8"));
  });

  it("says so when the address names no run", async () => {
    stubServer({});
    renderPage(RunPage, { route: "/runs/$id", at: "/runs/nonsense" });
    expect(await screen.findByText("There is no run nonsense")).toBeTruthy();
  });
});
