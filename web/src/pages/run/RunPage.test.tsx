import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Feed } from "@/api/feed";
import { LiveClient, setLiveClient } from "@/api/live";
import type { Run } from "@/api/types";
import { renderPage } from "@/testing/render";
import { sampleRun } from "@/testing/samples";
import { type Asked, problem, stubServer } from "@/testing/server";
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

const run = sampleRun({
  schedule: "backup",
  trigger: "manual",
  attempts: [{ started_at: "2026-11-16T10:00:01Z", finished_at: null, state: "running", error: null, node: "n1" }],
  totals: { copied: 12, errors: 1 },
  progress: { done: 3, total: 4, text: "copying" },
  key: "run-7",
  work: {
    kind: "http",
    method: "GET",
    url: "https://example.com",
    headers: {},
    json: null,
    body: null,
    expect: ["2xx"],
  },
});
const said = (number: number, text: string) => ({ number, at: null, line: text });
const open = () => renderPage(RunPage, { route: "/runs/$id", at: "/runs/7" });

describe("the page of a run", () => {
  it("shows what it runs after and what follows it", async () => {
    const upstreams = Array.from({ length: 9 }, (_, n) => ({ id: n + 20, schedule: null, task: "load", state: "succeeded" }));
    const dependents = [{ id: 8, schedule: "report", task: "report", state: null }];
    stubServer({ "GET /api/runs/7": run, "GET /api/runs/7/relations": { upstreams, dependents } });
    open();
    const before = await screen.findByRole("list", { name: "Runs after" });
    expect(within(before).getAllByRole("link")).toHaveLength(8);
    expect(within(before).getByRole("link", { name: "Run 20" }).getAttribute("href")).toContain("/runs/20");
    expect(within(before).getByText("and 1 more")).toBeTruthy();
    const after = screen.getByRole("list", { name: "Followed by" });
    expect(after.textContent).toBe("Run 8reportremoved");
    expect(within(after).queryByRole("link")).toBeNull();
  });

  it("says nothing of before and after where there is neither", async () => {
    stubServer({ "GET /api/runs/7": run, "GET /api/runs/7/relations": { upstreams: [], dependents: [] } });
    open();
    expect(await screen.findByText("Details")).toBeTruthy();
    expect(screen.queryByText("Before and after")).toBeNull();
  });

  it("goes on with the output where the first answer ended, and shows each line once", async () => {
    stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": {
        lines: [said(1, "first"), said(2, "\u001b[31msecond\u001b[0m <b>")],
        more: false,
        ended: false,
      },
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

  it("reads a long output to its end before it follows it", async () => {
    const portions = [[said(1, "first")], [said(2, "second")], [said(3, "third")]];
    const asked = stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": ({ query }: Asked) => {
        const after = Number(query.get("after"));
        return { lines: portions[after] ?? [], more: after < 2, ended: false };
      },
    });
    client.start();
    act(() => line.onopen?.());
    open();
    expect(await screen.findByText("third")).toBeTruthy();
    expect(screen.getByText("3 lines")).toBeTruthy();
    await waitFor(() => expect(line.sent).toContainEqual({ type: "subscribe", topic: "output:7", cursor: "3" }));
    const lines = asked.filter((each) => each.path.endsWith("/lines"));
    expect(lines.map((each) => each.query.get("after"))).toEqual(["0", "1", "2"]);
  });

  it("says that the rest of an ended output is missing, and reads on when asked to", async () => {
    let fails = true;
    stubServer({
      "GET /api/runs/7": { ...run, state: "succeeded" },
      "GET /api/runs/7/lines": ({ query }: Asked) => {
        if (query.get("after") === "0") return { lines: [said(1, "first")], more: true, ended: true };
        return fails ? problem(503, "the database is away") : { lines: [said(2, "last")], more: false, ended: true };
      },
    });
    open();
    expect(await screen.findByText("the database is away")).toBeTruthy();
    expect(screen.getByText("first")).toBeTruthy();
    fails = false;
    await userEvent.click(screen.getByText("Try again"));
    expect(await screen.findByText("last")).toBeTruthy();
    expect(screen.queryByText("the database is away")).toBeNull();
  });

  it("searches the output", async () => {
    stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": {
        lines: [said(1, "an Error"), said(2, "fine"), said(3, "error again")],
        more: false,
        ended: false,
      },
    });
    open();
    await screen.findByText("fine");
    await userEvent.type(screen.getByLabelText("Search the output"), "error");
    expect(await screen.findByText("2 matches")).toBeTruthy();
    await userEvent.keyboard("{Enter}{Enter}");
    expect(screen.getByText("2 of 2")).toBeTruthy();
  });

  it("says that it succeeded with errors, and how many", async () => {
    const ended: Run = { ...run, state: "succeeded", cause: "errors", reason: "3 errors", totals: { errors: 3 } };
    stubServer({
      "GET /api/runs/7": { ...ended, finished_at: "2026-11-16T10:00:09Z", progress: null },
      "GET /api/runs/7/lines": { lines: [], more: false, ended: true },
    });
    open();
    expect(await screen.findByText("Succeeded with 3 errors")).toBeTruthy();
    expect(screen.getByRole("heading", { level: 1 }).textContent).toBe("Run 7 succeeded with errors");
  });

  it("shows progress, totals and what it does, and cancels with a reason", async () => {
    const asked = stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": { lines: [], more: false, ended: false },
      "POST /api/runs/7/cancel": { ...run, state: "cancelled" },
    });
    open();
    expect(await screen.findByText("3 of 4 · 75 %")).toBeTruthy();
    expect(screen.getByText("GET https://example.com")).toBeTruthy();
    await userEvent.click(screen.getByText("Cancel"));
    await userEvent.type(await screen.findByLabelText("Reason (optional)"), "wrong shop");
    await userEvent.click(screen.getByText("Cancel run"));
    await waitFor(() => expect(asked.find((each) => each.method === "POST")?.body).toEqual({ reason: "wrong shop" }));
  });

  it("is being cancelled from the click until it has ended", async () => {
    stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": { lines: [], more: false, ended: false },
      "POST /api/runs/7/cancel": { ...run, cancelling: "by ada" },
    });
    const { cache } = open();
    await userEvent.click(await screen.findByText("Cancel"));
    await userEvent.click(await screen.findByText("Cancel run"));
    const button = await screen.findByRole("button", { name: "Cancelling…" });
    expect(button.getAttribute("aria-disabled")).toBe("true");
    expect(screen.getByRole("heading", { level: 1 }).textContent).toBe("Run 7 cancelling…");
    act(() => cache.setQueryData(["runs", "one", 7], { ...run, state: "cancelled", cancelling: null }));
    await waitFor(() => expect(screen.getByRole("heading", { level: 1 }).textContent).toBe("Run 7 cancelled"));
    expect(screen.getByText("Retry")).toBeTruthy();
  });

  it("says who started it, and who cancelled it beside the reason that they gave", async () => {
    const ended = { state: "cancelled" as const, reason: "wrong button", cancelled_by: "grace", started_by: "ada" };
    stubServer({
      "GET /api/runs/7": { ...run, ...ended, trigger: "manual" },
      "GET /api/runs/7/lines": { lines: [], more: false, ended: true },
    });
    open();
    expect(await screen.findByText("Cancelled by grace: wrong button")).toBeTruthy();
    expect(screen.getByText("Started by").nextElementSibling?.textContent).toBe("ada");
  });

  it("keeps the question and what is typed when the run ends under it", async () => {
    const asked = stubServer({
      "GET /api/runs/7": run,
      "GET /api/runs/7/lines": { lines: [], more: false, ended: false },
    });
    const { cache, router } = open();
    await userEvent.click(await screen.findByText("Cancel"));
    const reason = await screen.findByLabelText<HTMLInputElement>("Reason (optional)");
    await userEvent.type(reason, "wro");
    act(() => cache.setQueryData(["runs", "one", 7], { ...run, state: "succeeded" }));
    await screen.findByText("Run 7 has ended in the meantime: succeeded.");
    await userEvent.keyboard("ng shop");
    expect(reason.value).toBe("wrong shop");
    await userEvent.click(screen.getByRole("button", { name: "Cancel run" }));
    expect(asked.every((each) => each.method === "GET")).toBe(true);
    await userEvent.keyboard("{Escape}");
    await waitFor(() => expect(document.activeElement?.textContent).toBe("Retry"));
    expect(router.state.location.pathname).toBe("/runs/7");
  });

  it("shows the failed attempt of a run that waits for its next", async () => {
    const attempt = { started_at: "2026-11-16T10:00:01Z", finished_at: "2026-11-16T10:00:02Z", node: "n1" };
    let now: Run = run;
    stubServer({
      "GET /api/runs/7": () => now,
      "GET /api/runs/7/lines": { lines: [], more: false, ended: false },
    });
    const { cache } = open();
    await screen.findByRole("heading", { level: 1, name: "Run 7 running" });
    now = {
      ...run,
      state: "queued",
      attempt: 2,
      error: "the disk is full",
      attempts: [{ ...attempt, state: "failed", error: "the disk is full" }],
    };
    const { work: _work, result: _result, attempts: _attempts, ...told } = now;
    const event = { kind: "run_queued", at: now.due_at, run: told, schedule: "backup", session: null, data: {} } as const;
    act(() => new Feed(cache).hear({ type: "event", topic: "overview", event }));
    await screen.findByRole("heading", { level: 1, name: "Run 7 queued" });
    expect((await screen.findAllByText(/the disk is full/)).length).toBeGreaterThan(0);
  });

  it("has its end as a step that has not come yet, and a bar that does not look full", async () => {
    stubServer({
      "GET /api/runs/7": { ...run, progress: null },
      "GET /api/runs/7/lines": { lines: [], more: false, ended: false },
    });
    const { container, cache } = open();
    const end = (await screen.findByText("not yet")).parentElement;
    expect(end?.textContent).toBe("donenot yet");
    const running = () => [...container.querySelectorAll<HTMLElement>("[aria-hidden] > .h-full")].at(-1)?.style;
    expect(running()?.background).toContain("transparent");
    const ended: Run = { ...run, state: "succeeded", finished_at: "2026-11-16T10:00:09Z", progress: null };
    act(() => cache.setQueryData(["runs", "one", 7], ended));
    await waitFor(() => expect(screen.queryByText("not yet")).toBeNull());
    expect(running()?.background).not.toContain("transparent");
  });

  it.each([
    ["cancelled by root", "Cancelled by root"],
    ["wrong shop", "Cancelled: wrong shop"],
  ])("says once that it is cancelled, when the reason is: %s", async (reason, told) => {
    stubServer({
      "GET /api/runs/7": { ...run, state: "cancelled", reason },
      "GET /api/runs/7/lines": { lines: [], more: false, ended: true },
    });
    open();
    expect(await screen.findByText(told)).toBeTruthy();
  });

  it("marks in the output where the next attempt begins", async () => {
    const attempt = (started_at: string) => ({ started_at, finished_at: null, state: "failed", error: null, node: "n1" });
    const lines = [
      { number: 1, at: "2026-11-16T10:00:02Z", line: "no room" },
      { number: 2, at: "2026-11-16T10:00:06Z", line: "there is room" },
    ];
    stubServer({
      "GET /api/runs/7": { ...run, attempts: [attempt("2026-11-16T10:00:01Z"), attempt("2026-11-16T10:00:05Z")] },
      "GET /api/runs/7/lines": { lines, more: false, ended: false },
    });
    open();
    const output = await screen.findByRole("log");
    const mark = await within(output).findByText("attempt 2");
    expect(mark.parentElement?.textContent).toContain("there is room");
    expect(within(output).queryByText("attempt 1")).toBeNull();
  });

  it("says how much of a long output was cut", async () => {
    const lines = [said(1, "first"), { number: null, at: null, line: "… 5 lines were cut …" }, said(7, "last")];
    stubServer({ "GET /api/runs/7": run, "GET /api/runs/7/lines": { lines, more: false, ended: false } });
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
      "GET /api/runs/7/lines": { lines: [], more: false, ended: true },
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
