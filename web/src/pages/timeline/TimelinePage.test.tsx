import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { renderPage } from "@/testing/render";
import { stubServer } from "@/testing/server";
import { TimelinePage } from "./TimelinePage";

const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
const run = (id: number, schedule: string, state: string, changes = {}) => ({
  id,
  schedule,
  task: null,
  state,
  cause: null,
  trigger: "schedule",
  due_at: ago(30),
  last_due_at: null,
  count: 1,
  started_at: ago(30),
  finished_at: ago(28),
  lane: "cron",
  node: "n1",
  ...changes,
});
const timeline = (changes = {}) => ({
  from: ago(120),
  to: ago(-60),
  now: new Date().toISOString(),
  zone: "UTC",
  runs: [
    run(1, "backup", "succeeded"),
    run(2, "report", "missed", { started_at: null, finished_at: null, last_due_at: ago(20), count: 12 }),
  ],
  due: [{ schedule: "backup", at: ago(-10) }],
  truncated: false,
  stretches: [],
  due_stretches: [],
  known_from: null,
  incomplete: false,
  ...changes,
});
const lists = { "GET /api/projects": { items: [] } };
const open = (search = "") => renderPage(TimelinePage, { route: "/timeline", at: `/timeline${search}` });

beforeEach(() => {
  // happy-dom lays nothing out: the drawing has a size all the same.
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(400);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(1000);
});

describe("the timeline", () => {
  it("draws what ran, what was missed and what is due, and says it in words", async () => {
    stubServer({ ...lists, "GET /api/timeline": timeline() });
    open("?span=1h");
    const ran = await screen.findByLabelText(/^backup: succeeded, .*2 m 00 s$/);
    expect(ran.getAttribute("href")).toBe("/runs/1");
    expect(screen.getByLabelText(/^report: missed 12 due times/)).toBeTruthy();
    expect(screen.getByLabelText(/^backup: due,/).getAttribute("href")).toBe("/schedules/backup");
  });

  it("draws runs that overlap below each other, in a row that is as high as they need", async () => {
    const beside = [run(3, "sync", "succeeded"), run(4, "sync", "running", { started_at: ago(29), finished_at: null })];
    stubServer({ ...lists, "GET /api/timeline": timeline({ runs: [run(1, "backup", "succeeded"), ...beside], due: [] }) });
    open("?span=1h");
    const above = await screen.findByLabelText(/^sync: succeeded/);
    const below = screen.getByLabelText(/^sync: running/);
    expect([above.style.top, below.style.top]).toEqual(["0px", "32px"]);
    const heightOf = (bar: HTMLElement) => bar.parentElement?.parentElement?.style.height;
    expect([heightOf(screen.getByLabelText(/^backup/)), heightOf(above)]).toEqual(["32px", "64px"]);
  });

  it("keeps span, place, search and view in the address", async () => {
    const asked = stubServer({ ...lists, "GET /api/timeline": timeline() });
    const { router } = open();
    await screen.findByText("backup");
    await userEvent.click(screen.getByText("6h"));
    await userEvent.click(screen.getByLabelText("Earlier"));
    await userEvent.type(screen.getByLabelText("Search schedules"), "rep");
    await userEvent.click(screen.getByText("Table"));
    await waitFor(() => expect(router.state.location.search).toMatchObject({ span: "6h", q: "rep", view: "table" }));
    expect((router.state.location.search as { at?: string }).at).toMatch(/Z$/);
    expect(await screen.findByRole("columnheader", { name: "Schedule" })).toBeTruthy();
    expect(screen.queryByText("backup")).toBeNull();
    const { from, to } = Object.fromEntries(asked.findLast((each) => each.path === "/api/timeline")!.query);
    expect((Date.parse(to!) - Date.parse(from!)) / 3_600_000).toBeLessThanOrEqual(10.5);
  });

  it("says so when there is more than can be drawn, and when there is nothing", async () => {
    stubServer({ ...lists, "GET /api/timeline": timeline({ incomplete: true, runs: [], due: [] }) });
    open();
    expect(await screen.findByText(/There are too many schedules to draw/)).toBeTruthy();
    expect(screen.getByText("Nothing happened in this period, and nothing is due")).toBeTruthy();
    expect(screen.getByText('ostinato schedule add hello "every 5m" --shell "echo hello" --db sqlite:////srv/jobs.db')).toBeTruthy();
  });

  it("draws what is only counted, hatches what nobody counted, and says so", async () => {
    const counted = { schedule: "busy", task: null, state: "succeeded", with_errors: false, run: null };
    const stretches = [{ ...counted, from: ago(40), to: ago(31), runs: 5400, due_times: 5400 }];
    stubServer({ ...lists, "GET /api/timeline": timeline({ truncated: true, stretches, known_from: ago(40) }) });
    open("?span=1h");
    const bar = await screen.findByLabelText(/^busy: 5,400 succeeded, /);
    expect(bar.getAttribute("href")).toBe("/schedules/busy");
    expect(screen.getByText(/the time before is hatched/)).toBeTruthy();
    expect(document.querySelector<HTMLElement>("[data-unknown]")?.style.width).toMatch(/^\d+/);
    expect(within(screen.getByLabelText("What the bars mean")).getByText("not counted")).toBeTruthy();
  });

  it("does not speak of a time that nobody counted while it is not in sight", async () => {
    const counted = { schedule: "busy", task: null, state: "succeeded", with_errors: false, run: null };
    const stretches = [{ ...counted, from: ago(70), to: ago(31), runs: 5400, due_times: 5400 }];
    stubServer({ ...lists, "GET /api/timeline": timeline({ truncated: true, stretches, known_from: ago(70) }) });
    open("?span=1h");
    await screen.findByLabelText(/^busy: 5,400 succeeded, /);
    expect(screen.queryByText(/the time before is hatched/)).toBeNull();
  });

  it("leads from many runs of a task without a schedule to the list of them", async () => {
    const loose = (id: number) => run(id, "", "succeeded", { schedule: null, task: "mail.send", started_at: ago(30) });
    const runs = [{ ...loose(1), finished_at: ago(30) }, { ...loose(2), finished_at: ago(30) }];
    stubServer({ ...lists, "GET /api/timeline": timeline({ runs, due: [] }) });
    open("?span=6h");
    const group = await screen.findByRole("link", { name: /^mail.send: 2 succeeded/ });
    expect(group.getAttribute("href")).toBe("/runs?task=mail.send");
  });

  it("offers to clear a search that finds nothing", async () => {
    stubServer({ ...lists, "GET /api/timeline": timeline() });
    const { router } = open("?q=nothing");
    await userEvent.click(await screen.findByText("Clear search"));
    await waitFor(() => expect(router.state.location.search).toEqual({}));
    expect(await screen.findByText("backup")).toBeTruthy();
  });

  it("tells a failed run from others by its shape, also among many that succeeded", async () => {
    const second = (id: number, state: string, seconds: number) => {
      const at = new Date(Date.now() - 1_800_000 + seconds * 1000).toISOString();
      return run(id, "busy", state, { due_at: at, started_at: at, finished_at: at });
    };
    const busy = [second(3, "succeeded", 0), second(4, "failed", 10), second(5, "succeeded", 20)];
    const runs = [run(1, "backup", "succeeded"), run(2, "report", "failed"), ...busy];
    stubServer({ ...lists, "GET /api/timeline": timeline({ runs, due: [] }) });
    open("?span=1h");
    const failed = await screen.findByLabelText(/^report: failed/);
    const succeeded = screen.getByLabelText(/^backup: succeeded/);
    expect(failed.className).toContain("h-7");
    expect(failed.querySelector("svg")).toBeTruthy();
    expect(succeeded.className).toContain("h-5");
    expect(succeeded.querySelector("svg")).toBeNull();
    const many = screen.getByLabelText(/^busy: 2 succeeded, 1 failed/);
    expect(many.querySelector("span")?.className).toContain("-inset-y-1");
  });

  it("tells a run that succeeded with errors from others by its shape and in words", async () => {
    const errors = run(2, "copy", "succeeded", { cause: "errors" });
    stubServer({ ...lists, "GET /api/timeline": timeline({ runs: [run(1, "backup", "succeeded"), errors], due: [] }) });
    open("?span=1h");
    const bar = await screen.findByLabelText(/^copy: succeeded with errors, /);
    expect(bar.className).toContain("h-6");
    expect(bar.querySelector("svg")).toBeTruthy();
    expect(screen.getByLabelText(/^backup: succeeded, /).className).toContain("h-5");
    expect(within(screen.getByLabelText("What the bars mean")).getByText("succeeded with errors")).toBeTruthy();
  });
});
