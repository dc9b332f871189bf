import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Node } from "@/api/types";
import { OverviewPage } from "@/pages/overview/OverviewPage";
import { renderPage } from "@/testing/render";
import { sampleOverview, sampleRun, sampleSchedule } from "@/testing/samples";
import { ME, problem, stubServer } from "@/testing/server";

it("without an engine the page says so and how to start one", async () => {
  const engine = { alive: false, nodes: 0, lost: 0, here: false };
  stubServer({ "GET /api/overview": sampleOverview({ engine }) });
  renderPage(OverviewPage);
  expect((await screen.findByRole("alert")).textContent).toContain("No engine is running");
  expect(screen.getByText("ostinato worker --db sqlite:////srv/jobs.db")).toBeDefined();
});

it("a house without schedules shows the command that makes the first one", async () => {
  const counts = { ...sampleOverview().counts, schedules: 0, on: 0 };
  stubServer({ "GET /api/overview": sampleOverview({ counts }) });
  renderPage(OverviewPage);
  expect((await screen.findByText(/ostinato schedule add/)).textContent).toContain("every 1m");
});

it("what is due is counted in all, and what nobody ran is called overdue", async () => {
  const at = (minutes: number) => new Date(Date.parse(sampleOverview().now) + minutes * 60_000).toISOString();
  const due = Array.from({ length: 50 }, (_, number) => ({ schedule: `s${number}`, at: at(number === 0 ? -1 : number + 5), zone: "UTC" }));
  const counts = { ...sampleOverview().counts, due: 1416 };
  stubServer({ "GET /api/overview": sampleOverview({ due, counts }) });
  renderPage(OverviewPage);
  await screen.findByText("1,416 schedules");
  await screen.findByText("and 1,404 more schedules on the timeline");
  expect((await screen.findByText("overdue")).closest("li")?.textContent).toContain("s0");
});

it("a running run shows how far it is, and is cancelled after a question", async () => {
  const run = sampleRun({ progress: { done: 3, total: 4, text: "tables" } });
  const asked = stubServer({
    "GET /api/overview": sampleOverview({ running: [run] }),
    "POST /api/runs/7/cancel": sampleRun({ state: "cancelled" }),
  });
  renderPage(OverviewPage);
  expect((await screen.findByRole("progressbar")).getAttribute("aria-valuenow")).toBe("75");
  await userEvent.click(screen.getByRole("button", { name: "Cancel run 7" }));
  expect(asked.every((one) => one.method === "GET")).toBe(true);
  await screen.findByText(/nobody can end a thread\. The run is not retried\.$/);
  await userEvent.click(screen.getByRole("button", { name: "Cancel run" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(asked.filter((one) => one.method === "POST").map((one) => one.path)).toEqual(["/api/runs/7/cancel"]);
});

it("a cancel that the server refuses keeps the question open, with the reason", async () => {
  stubServer({
    "GET /api/overview": sampleOverview({ running: [sampleRun()] }),
    "POST /api/runs/7/cancel": problem(409, "run 7 has ended: succeeded"),
  });
  renderPage(OverviewPage);
  await userEvent.click(await screen.findByRole("button", { name: "Cancel run 7" }));
  await userEvent.click(await screen.findByRole("button", { name: "Cancel run" }));
  await screen.findByText("run 7 has ended: succeeded");
  expect(screen.getByRole("dialog")).toBeDefined();
});

it("a broken schedule says why, and a failed check says what keeps it off", async () => {
  stubServer({
    "GET /api/overview": sampleOverview({
      broken: [sampleSchedule({ enabled: false, broken: "3 runs failed in a row" })],
    }),
    "POST /api/schedules/nightly/enable": problem(409, "check disk says no: 1 GB free"),
  });
  renderPage(OverviewPage);
  await screen.findByText("3 runs failed in a row");
  await userEvent.click(screen.getByRole("button", { name: "Enable" }));
  await screen.findByText("check disk says no: 1 GB free");
});

it("a row that was set aside is shown with its reason and how to see more", async () => {
  const counts = { ...sampleOverview().counts, quarantined: 21 };
  const quarantine = [{ table: "runs", row: "17", reason: "its state is unknown", at: sampleOverview().now }];
  stubServer({ "GET /api/overview": sampleOverview({ quarantine, counts }) });
  renderPage(OverviewPage);
  expect((await screen.findByText("runs 17")).closest("li")?.textContent).toContain("its state is unknown");
  expect(screen.getByText("21 rows")).toBeDefined();
  expect(screen.getByText("ostinato db quarantine --db sqlite:////srv/jobs.db")).toBeDefined();
});

it("without such rows there is no word of them", async () => {
  stubServer({ "GET /api/overview": sampleOverview() });
  renderPage(OverviewPage);
  await screen.findByText("Activity");
  expect(screen.queryByText("Quarantined")).toBeNull();
});

it("a viewer sees the buttons but cannot use them", async () => {
  stubServer({
    "GET /api/me": { ...ME, role: "viewer" },
    "GET /api/overview": sampleOverview({ running: [sampleRun()] }),
  });
  renderPage(OverviewPage);
  const button = await screen.findByRole("button", { name: "Cancel run 7" });
  await waitFor(() => expect(button.getAttribute("aria-disabled")).toBe("true"));
  await userEvent.click(button);
  expect(screen.queryByRole("dialog")).toBeNull();
});

const node = (changes: Partial<Node>): Node => ({
  id: "shop-1",
  host: "shop",
  pid: 1,
  state: "alive",
  draining: false,
  running: 0,
  slots: 8,
  seen_at: sampleOverview().now,
  started_at: "2026-11-16T09:00:00Z",
  services: {},
  tasks: [],
  ...changes,
});
/** By the clock of the server, which sampleOverview tells. */
const minutesAgo = (minutes: number): string =>
  new Date(Date.parse(sampleOverview().now) - minutes * 60_000).toISOString();

it("a node that was lost minutes ago is told of, one of yesterday is not", async () => {
  stubServer({
    "GET /api/overview": sampleOverview(),
    "GET /api/nodes": {
      items: [
        node({}),
        node({ id: "shop-2", state: "lost", seen_at: minutesAgo(3.5) }),
        node({ id: "shop-3", state: "lost", seen_at: minutesAgo(11) }),
      ],
    },
  });
  renderPage(OverviewPage);
  const alert = await screen.findByRole("alert");
  // What ticks is beside the alert: it is not read out again every minute.
  expect(alert.textContent).toBe("Node shop-2 was lost: it stopped without notice");
  expect(alert.parentElement?.textContent).toContain("last seen 3 m ago");
  expect(screen.getByRole("link", { name: "Show nodes" }).getAttribute("href")).toBe("/nodes");
});

it("when every node that is there drains, nothing will start, and the page says so", async () => {
  stubServer({
    "GET /api/overview": sampleOverview(),
    "GET /api/nodes": {
      items: [node({ draining: true }), node({ id: "shop-2", state: "lost", seen_at: minutesAgo(600) })],
    },
  });
  renderPage(OverviewPage);
  expect((await screen.findByRole("alert")).textContent).toContain("No node takes new work: all are draining");
});

it("the numbers lead to the runs that they count", async () => {
  stubServer({ "GET /api/overview": sampleOverview() });
  renderPage(OverviewPage);
  const leads = async (name: RegExp) => (await screen.findByRole("link", { name })).getAttribute("href");
  expect(await leads(/^Running/)).toBe("/runs?state=running");
  expect(await leads(/^Queued/)).toBe("/runs?state=queued");
  expect(await leads(/^Late/)).toBe("/runs?state=queued");
  expect(await leads(/^Failed/)).toBe("/runs?state=failed&since=24h");
});

it("a run that was told to stop says so until it has, and cannot be told twice", async () => {
  stubServer({
    "GET /api/overview": sampleOverview({ running: [sampleRun({ cancelling: "by ada" })] }),
  });
  renderPage(OverviewPage);
  expect(await screen.findByText("cancelling…")).toBeDefined();
  expect(screen.getByRole("button", { name: "Cancel run 7" }).getAttribute("aria-disabled")).toBe("true");
});

it("a double click on Retry makes one run, and pressed again after no answer it is the same one", async () => {
  let answer: () => unknown = () => undefined;
  const failed = [sampleRun({ state: "failed", error: "exit code 3" }), sampleRun({ id: 8, state: "failed" })];
  const asked = stubServer({
    "GET /api/overview": sampleOverview({ failed }),
    "POST /api/runs/7/retry": () => new Promise((resolve) => (answer = () => resolve(problem(502, "no answer")))),
  });
  renderPage(OverviewPage);
  await screen.findByRole("button", { name: "Retry run 8" });
  const button = screen.getByRole("button", { name: "Retry run 7" });
  await userEvent.dblClick(button);
  const retries = () => asked.filter((one) => one.method === "POST");
  expect(retries()).toHaveLength(1);
  expect(button.getAttribute("aria-busy")).toBe("true");
  answer();
  await screen.findByText("no answer");
  await userEvent.click(button);
  expect(retries()).toHaveLength(2);
  const [first, second] = retries().map((one) => one.headers.get("Idempotency-Key"));
  expect(first).toBeTruthy();
  expect(second).toBe(first);
});
