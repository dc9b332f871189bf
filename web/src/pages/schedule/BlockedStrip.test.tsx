import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { BlockedBy } from "@/api/types";
import { renderPage } from "@/testing/render";
import { sampleRun, sampleSchedule } from "@/testing/samples";
import { ME, problem, stubServer } from "@/testing/server";
import { RunPage } from "../run/RunPage";
import { SchedulePage } from "./SchedulePage";

const paused: BlockedBy = {
  cause: "lane_paused",
  sentence: "lane 'cron' is paused by ada (disk swap)",
  since: "2026-11-16T03:00:00Z",
  until: null,
  command: "ostinato lane resume cron",
  action: { verb: "lane.resume", target: "cron", label: "Resume lane cron", arguments: {} },
  chain: [
    { kind: "run", name: "7050" },
    { kind: "lane", name: "cron" },
  ],
};
const SENTENCE = "Lane 'cron' is paused by ada (disk swap)";

function openSchedule(blocked: BlockedBy | null, more: Record<string, unknown> = {}, of: object = {}) {
  const schedule = sampleSchedule({ name: "tick", blocked_by: blocked, ...of });
  const asked = stubServer({
    "GET /api/schedules/tick": schedule,
    "GET /api/schedules/tick/next": { zone: "UTC", next: [], reason: null },
    "GET /api/schedules/tick/history": { zone: "UTC", days: [] },
    "GET /api/runs": { items: [], next: null },
    ...more,
  });
  renderPage(SchedulePage, { route: "/schedules/$name", at: "/schedules/tick" });
  return asked;
}

const openRun = (run: ReturnType<typeof sampleRun>) => {
  const asked = stubServer({
    [`GET /api/runs/${run.id}`]: run,
    [`GET /api/runs/${run.id}/lines`]: { lines: [], more: false, ended: false },
  });
  renderPage(RunPage, { route: "/runs/$id", at: `/runs/${run.id}` });
  return asked;
};

describe("the strip of what is blocked", () => {
  it("says without being asked what holds up a schedule, by which way, and the command that ends it", async () => {
    openSchedule(paused);
    expect(await screen.findByText(SENTENCE)).toBeTruthy();
    expect(screen.getByRole("link", { name: "run 7050" }).getAttribute("href")).toBe("/runs/7050");
    expect(screen.getByRole("link", { name: "lane cron" }).getAttribute("href")).toBe("/lanes");
    expect(await screen.findByText("ostinato lane resume cron --db sqlite:////srv/jobs.db")).toBeTruthy();
  });

  it("ends it with its button, and asks anew what holds", async () => {
    const asked = openSchedule(paused, { "POST /api/lanes/cron/resume": { name: "cron" } });
    await userEvent.click(await screen.findByRole("button", { name: "Resume lane cron" }));
    expect(await screen.findByText("Resume lane cron: done")).toBeTruthy();
    const resumed = asked.findIndex((each) => each.path === "/api/lanes/cron/resume");
    expect(asked.slice(resumed).some((each) => each.path === "/api/schedules/tick")).toBe(true);
  });

  it("says why it could not be ended", async () => {
    openSchedule(paused, { "POST /api/lanes/cron/resume": problem(404, "there is no lane 'cron'") });
    await userEvent.click(await screen.findByRole("button", { name: "Resume lane cron" }));
    expect(await screen.findByText(/there is no lane 'cron'/)).toBeTruthy();
  });

  it("does not let a viewer end it, and says who may", async () => {
    const asked = openSchedule(paused, { "GET /api/me": { ...ME, role: "viewer" } });
    const button = await screen.findByRole("button", { name: "Resume lane cron" });
    await userEvent.click(button);
    expect(button.getAttribute("aria-disabled")).toBe("true");
    expect(asked.some((each) => each.method === "POST")).toBe(false);
  });

  it.each([
    ["lane.set", "cron", "PUT /api/lanes/cron", { limit: 3 }],
    ["node.resume", "one", "POST /api/nodes/one/resume", {}],
    ["schedule.enable", "other", "POST /api/schedules/other/enable", {}],
  ] as const)("carries out %s", async (verb, target, request, args) => {
    const run = sampleRun({
      id: 7,
      state: "queued",
      blocked_by: { ...paused, action: { verb, target, label: "End it", arguments: args } },
    });
    const answers = { "GET /api/runs/7": run, "GET /api/runs/7/lines": { lines: [], more: false, ended: false } };
    const asked = stubServer({ ...answers, [request]: {} });
    renderPage(RunPage, { route: "/runs/$id", at: "/runs/7" });
    await userEvent.click(await screen.findByRole("button", { name: "End it" }));
    expect(await screen.findByText("End it: done")).toBeTruthy();
    const found = asked.find((each) => `${each.method} ${each.path}` === request);
    expect(found?.body ?? {}).toEqual(args);
  });

  it("leads to the form where another timing is what ends it", async () => {
    const action = { verb: "schedule.edit", target: "tick", label: "Give it another timing", arguments: {} } as const;
    openSchedule({ ...paused, cause: "finished", action });
    const link = await screen.findByRole("link", { name: "Give it another timing" });
    expect(link.getAttribute("href")).toBe("/schedules/tick/edit");
  });

  it("asks before it cancels the run that is in the way", async () => {
    const busy: BlockedBy = {
      ...paused,
      cause: "session_busy",
      sentence: "session 'chat' is busy: run 3 is running",
      command: "ostinato run cancel 3",
      action: { verb: "run.cancel", target: "3", label: "Cancel run 3", arguments: {} },
      chain: [{ kind: "session", name: "chat" }],
    };
    const asked = openSchedule(busy, {
      "GET /api/runs/3": sampleRun({ id: 3, state: "running" }),
      "POST /api/runs/3/cancel": sampleRun({ id: 3, state: "running", cancelling: "enough" }),
    });
    await userEvent.click(await screen.findByRole("button", { name: "Cancel run 3" }));
    expect(await screen.findByText("Cancel run 3 of nightly?")).toBeTruthy();
    await userEvent.type(screen.getByLabelText("Reason (optional)"), "enough");
    await userEvent.click(screen.getByRole("button", { name: "Cancel run" }));
    expect(await screen.findByText("Run 3 is being cancelled")).toBeTruthy();
    expect(asked.find((each) => each.method === "POST")?.body).toEqual({ reason: "enough" });
  });

  it("is not there where nothing is blocked", async () => {
    openSchedule(null);
    await screen.findByRole("heading", { level: 1, name: /tick/ });
    expect(screen.queryByText(/by way of/)).toBeNull();
  });

  it("of a task that no node knows stands instead of what would switch it on", async () => {
    const broken = "task 't' is not registered on any running node";
    const unknown: BlockedBy = { ...paused, cause: "unknown_task", sentence: broken, action: null, chain: [] };
    openSchedule(unknown, {}, { broken, state: "broken" });
    expect(await screen.findByText("Task 't' is not registered on any running node")).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Re-enable" })).toBeNull();
  });

  it("of a queued run is told once, beside a reason of its own", async () => {
    openRun(sampleRun({ id: 7050, state: "queued", reason: paused.sentence, blocked_by: paused }));
    expect(await screen.findAllByText(/is paused by ada/)).toHaveLength(1);
  });

  it("of a queued run stands beside the reason that its row has", async () => {
    const reason = "attempt 1 of 4 failed: no ink";
    openRun(sampleRun({ id: 7050, state: "queued", reason, blocked_by: paused }));
    expect(await screen.findByText(SENTENCE)).toBeTruthy();
    expect(screen.getByText(/no ink/)).toBeTruthy();
  });

  it("tells times of the server in the zone that people read", async () => {
    openSchedule({ ...paused, sentence: "lane 'cron' is paused since 2026-11-16 03:00:00 UTC" });
    expect(await screen.findByText(/^Lane 'cron' is paused since (?!2026-11-16 03:00:00 UTC)/)).toBeTruthy();
  });
});
