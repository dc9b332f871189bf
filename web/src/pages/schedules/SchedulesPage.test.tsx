import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Schedule } from "@/api/types";
import { renderPage } from "@/testing/render";
import { sampleRun, sampleSchedule } from "@/testing/samples";
import { type Asked, problem, stubServer } from "@/testing/server";
import { SchedulesPage } from "./SchedulesPage";

const schedule = (id: number, name: string, changes: Partial<Schedule> = {}): Schedule =>
  sampleSchedule({
    id,
    name,
    timing: "every 5m",
    sentence: "Every 5 minutes.",
    next_run_at: "2099-01-01T00:00:00Z",
    recent: [
      { id: 1, state: "succeeded", seconds: 1, at: "2026-11-16T10:00:00Z" },
      { id: 2, state: "failed", seconds: 2, at: "2026-11-16T10:05:00Z" },
    ],
    ...changes,
  });
const page = (...items: Schedule[]) => ({ items, next: null, total: items.length });
const lists = {
  "GET /api/projects": {
    items: [{ name: "site", folder: "/srv", env: {}, schedules: 1, created_at: "2026-11-16T10:00:00Z" }],
  },
};
const open = (search = "") => renderPage(SchedulesPage, { route: "/schedules", at: `/schedules${search}` });

describe("the list of schedules", () => {
  it("shows what each did last, and why one is broken", async () => {
    const last = sampleRun({ id: 9, state: "failed", finished_at: "2026-11-16T10:00:03Z" });
    stubServer({
      ...lists,
      "GET /api/schedules": page(
        schedule(1, "backup"),
        schedule(2, "report", { broken: "3 failures in a row", enabled: false, next_run_at: null, last_run: last }),
      ),
    });
    open();
    expect(await screen.findByText("backup")).toBeTruthy();
    expect(screen.getAllByLabelText("Last 2 runs: 1 succeeded, 1 failed.")).toHaveLength(2);
    const broken = screen.getByText("3 failures in a row");
    expect(broken.parentElement?.textContent).toContain("Every 5 minutes (UTC).");
    expect(screen.getByLabelText("Switch report on or off").getAttribute("aria-checked")).toBe("false");
    expect(screen.getByText("2 schedules")).toBeTruthy();
  });

  it("marks what succeeded with errors, and says how many", async () => {
    const last = sampleRun({
      id: 9,
      state: "succeeded",
      cause: "errors",
      reason: "3 errors",
      finished_at: "2026-11-16T10:00:03Z",
    });
    const recent: Schedule["recent"] = [
      { id: 9, state: "succeeded", cause: "errors", seconds: 1, at: "2026-11-16T10:00:00Z" },
    ];
    stubServer({ ...lists, "GET /api/schedules": page(schedule(1, "copy", { last_run: last, recent })) });
    open();
    const badge = (await screen.findByText("with errors")).parentElement;
    expect(badge?.title).toBe("It succeeded with 3 errors.");
    expect(badge?.textContent).toBe("succeeded with errors");
    expect(badge?.closest("a")?.textContent).toContain(" · 3 errors");
    expect(screen.getByLabelText("Last run: 1 succeeded with errors.")).toBeTruthy();
  });

  it("asks the server with the filters of the address, and keeps a new one there", async () => {
    const asked = stubServer({ ...lists, "GET /api/schedules": page(schedule(1, "backup")) });
    const { router } = open("?state=broken&q=back");
    await screen.findByText("backup");
    const first = asked.find((each) => each.path === "/api/schedules");
    expect(Object.fromEntries(first!.query)).toEqual({
      state: "broken",
      q: "back",
      sort: "next",
      recent: "60",
      limit: "200",
    });
    await screen.findByText("site");
    expect(screen.getByText<HTMLOptionElement>("paused by its budget").value).toBe("paused");
    await userEvent.selectOptions(screen.getByLabelText("Project"), "site");
    await waitFor(() => expect(router.state.location.search).toEqual({ state: "broken", q: "back", project: "site" }));
    expect(asked.at(-1)?.query.get("project")).toBe("site");
  });

  it("says what kind of work each does, and which failed last", async () => {
    const shell = schedule(2, "poll", { work: { kind: "shell", command: "curl site" } as never });
    const asked = stubServer({ ...lists, "GET /api/schedules": page(schedule(1, "backup"), shell) });
    open();
    expect((await screen.findByText("Shell")).parentElement?.title).toBe("curl site");
    expect(screen.getByText("Task")).toBeTruthy();
    await userEvent.selectOptions(screen.getByLabelText("State"), "last failed");
    await waitFor(() => expect(asked.at(-1)?.query.get("state")).toBe("failing"));
  });

  it("says what to type when there is nothing yet, and what to do when nothing fits", async () => {
    stubServer({ ...lists, "GET /api/schedules": page() });
    open();
    expect(await screen.findByText('ostinato schedule add hello "every 5m" --shell "echo hello" --db sqlite:////srv/jobs.db')).toBeTruthy();
    open("?q=nothing");
    expect(await screen.findByText("No schedule matches these filters")).toBeTruthy();
  });

  it("goes on with the next page when the end comes into sight", async () => {
    const rows = (from: number) =>
      Array.from({ length: 3 }, (_, index) => schedule(from + index, `job-${from + index}`));
    const pages: Record<string, unknown> = {
      "": { items: rows(1), next: "b", total: 6 },
      b: { items: rows(4), next: null, total: 6 },
    };
    stubServer({ ...lists, "GET /api/schedules": (asked: Asked) => pages[asked.query.get("cursor") ?? ""] });
    open();
    expect(await screen.findByText("job-1")).toBeTruthy();
    expect(await screen.findByText("job-6")).toBeTruthy();
    expect(screen.getByText("6 schedules")).toBeTruthy();
  });

  it("lists each schedule that a bulk action failed for, and keeps those selected", async () => {
    const failed = [
      {
        name: "report",
        problem: {
          type: "/problems/checks-failed",
          title: "Checks failed",
          status: 409,
          detail: "a check of 'report' failed",
          checks: { disk: "only 2 % free" },
        },
      },
    ];
    const asked = stubServer({
      ...lists,
      "GET /api/schedules": page(schedule(1, "backup"), schedule(2, "report")),
      "POST /api/schedules/bulk": { done: ["backup"], failed },
    });
    open();
    await userEvent.click(await screen.findByLabelText("Select all loaded schedules"));
    await userEvent.click(screen.getByText("Enable"));
    const dialog = await screen.findByRole("dialog");
    expect(within(dialog).getByText("1 schedule was not enabled")).toBeTruthy();
    expect(within(dialog).getByText("1 other was enabled.")).toBeTruthy();
    expect(within(dialog).getByText("disk: only 2 % free")).toBeTruthy();
    expect(asked.find((each) => each.method === "POST")?.body).toEqual({
      action: "enable",
      names: ["backup", "report"],
    });
    expect(screen.getByLabelText<HTMLInputElement>("Select report").checked).toBe(true);
    expect(screen.getByLabelText<HTMLInputElement>("Select backup").checked).toBe(false);
  });

  it("asks for a reason before one is paused, and shows the checks when it cannot be enabled", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/schedules": page(schedule(1, "backup"), schedule(2, "report", { enabled: false, next_run_at: null })),
      "POST /api/schedules/backup/disable": schedule(1, "backup", { enabled: false }),
      "POST /api/schedules/report/enable": problem(409, "a check failed", { checks: { disk: "only 2 % free" } }),
    });
    open();
    await userEvent.click(await screen.findByLabelText("Switch backup on or off"));
    await userEvent.type(await screen.findByLabelText("Reason (optional)"), "moving");
    expect(screen.getByText("Pause backup?")).toBeTruthy();
    await userEvent.click(screen.getByText("Pause schedule"));
    await waitFor(() => expect(asked.find((each) => each.path.endsWith("/disable"))?.body).toEqual({ note: "moving", keep_retries: false }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    await userEvent.click(screen.getByLabelText("Switch report on or off"));
    expect(await screen.findByText("report could not be enabled")).toBeTruthy();
    expect(screen.getByText("disk")).toBeTruthy();
  });

  it("enables once, however often the button is pressed", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/schedules": page(schedule(1, "backup"), schedule(2, "report")),
      "POST /api/schedules/bulk": () => new Promise(() => undefined),
    });
    open();
    await userEvent.click(await screen.findByLabelText("Select all loaded schedules"));
    const button = screen.getByText("Enable");
    await userEvent.click(button);
    await waitFor(() => expect(button.getAttribute("aria-busy")).toBe("true"));
    await userEvent.click(button);
    expect(asked.filter((each) => each.method === "POST")).toHaveLength(1);
  });

  it("asks before it runs many, with their number, and keeps no reason for the next time", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/schedules": page(schedule(1, "backup"), schedule(2, "report")),
      "POST /api/schedules/bulk": { done: ["backup", "report"], failed: [] },
    });
    open();
    await userEvent.click(await screen.findByLabelText("Select all loaded schedules"));
    await userEvent.click(screen.getByText("Pause"));
    await userEvent.type(await screen.findByLabelText("Reason (optional)"), "moving");
    await userEvent.click(screen.getByText("Go back"));
    await userEvent.click(screen.getByText("Pause"));
    expect((await screen.findByLabelText<HTMLInputElement>("Reason (optional)")).value).toBe("");
    await userEvent.click(screen.getByText("Go back"));
    await userEvent.click(screen.getByText("Run now"));
    expect(await screen.findByText("Run 2 schedules now?")).toBeTruthy();
    expect(asked.some((each) => each.method === "POST")).toBe(false);
    await userEvent.click(screen.getByText("Run 2 schedules"));
    expect(await screen.findByText("2 schedules started")).toBeTruthy();
    const sent = asked.find((each) => each.method === "POST");
    expect(sent?.body).toEqual({ action: "trigger", names: ["backup", "report"] });
  });

  it("speaks of one as of one, and of many as of many", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/schedules": page(schedule(1, "backup"), schedule(2, "report")),
      "POST /api/schedules/bulk": { done: ["backup", "report"], failed: [] },
    });
    open();
    const press = async (name: string) => userEvent.click(screen.getByRole("button", { name }));
    await userEvent.click(await screen.findByLabelText("Select backup"));
    await press("Pause");
    expect(screen.getByText("Pause 1 schedule?")).toBeTruthy();
    expect(screen.getByText(/^It will be off, .* until somebody enables it again/)).toBeTruthy();
    await press("Go back");
    await press("Remove");
    expect(screen.getByText(/^The schedule, its runs and their output will be removed\./)).toBeTruthy();
    await press("Go back");
    await userEvent.click(screen.getByLabelText("Select report"));
    await press("Pause");
    expect(screen.getByText("Pause 2 schedules?")).toBeTruthy();
    expect(screen.getByText(/^They will be off, .* until somebody enables them again/)).toBeTruthy();
    await userEvent.type(screen.getByLabelText("Reason (optional)"), " moving ");
    await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Pause schedules" }));
    expect(await screen.findByText("2 schedules paused")).toBeTruthy();
    const sent = asked.find((each) => each.method === "POST");
    expect(sent?.body).toEqual({ action: "disable", names: ["backup", "report"], note: "moving" });
  });

  it("keeps the zone in sight where the sentence is cut, and has all of it as a tooltip", async () => {
    const sentence = "Every 30 minutes, counted from the end of the run before.";
    stubServer({ ...lists, "GET /api/schedules": page(schedule(1, "sync", { sentence, zone: "Europe/Berlin" })) });
    open();
    const zone = await screen.findByText("(Europe/Berlin).");
    expect(zone.className).toContain("shrink-0");
    expect(zone.parentElement?.title).toBe(
      "Every 30 minutes, counted from the end of the run before (Europe/Berlin).",
    );
  });
});
