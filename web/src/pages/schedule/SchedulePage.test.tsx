import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { renderPage } from "@/testing/render";
import { sampleRun, sampleSchedule } from "@/testing/samples";
import { type Asked, problem, stubServer } from "@/testing/server";
import { SchedulePage } from "./SchedulePage";

const schedule = sampleSchedule({
  name: "backup",
  sentence: "At 03:00 every day.",
  next_run_at: "2099-01-01T03:00:00Z",
  version: 4,
  work: { kind: "function", task: "copy", args: ["site"], kwargs: { full: true } },
});
const run = sampleRun({
  schedule: "backup",
  task: "copy",
  state: "succeeded",
  due_at: "2026-11-16T03:00:00Z",
  started_at: "2026-11-16T03:00:00Z",
  finished_at: "2026-11-16T03:00:09Z",
  totals: { copied: 12, skipped: 3, errors: 0 },
});
const answers = {
  "GET /api/schedules/backup": schedule,
  "GET /api/schedules/backup/next": { zone: "UTC", next: ["2099-01-01T03:00:00Z"], reason: null },
  "GET /api/schedules/backup/history": {
    zone: "UTC",
    days: [{ date: "2026-11-16", states: { succeeded: 1 }, with_errors: 0, seconds: 9 }],
  },
  "GET /api/runs": { items: [run], next: null },
};
const open = (search = "") => renderPage(SchedulePage, { route: "/schedules/$name", at: `/schedules/backup${search}` });

describe("the page of a schedule", () => {
  it("shows its work and policies in words", async () => {
    stubServer(answers);
    open();
    expect(await screen.findByText('copy("site", full=true)')).toBeTruthy();
    expect(screen.getByText("A due time is skipped while a run is still active.")).toBeTruthy();
    expect(await screen.findByText("1 run on 1 day; nothing failed.")).toBeTruthy();
  });

  it("leads to the calendars whose days it leaves out", async () => {
    const timing = 'daily 03:00 except calendar(office) except calendar("sales team")';
    stubServer({ ...answers, "GET /api/schedules/backup": { ...schedule, timing } });
    open();
    expect((await screen.findByRole("link", { name: "office" })).getAttribute("href")).toBe("/calendars?calendar=office");
    expect(screen.getByRole("link", { name: "sales team" })).toBeTruthy();
  });

  it("runs so long after it has finished with one press, which can be taken back", async () => {
    const asked = stubServer({
      ...answers,
      "GET /api/schedules/backup": { ...schedule, timing: "daily 03:00" },
      "PATCH /api/schedules/backup": ({ body }: Asked) => ({ ...schedule, ...(body as object) }),
    });
    open();
    const often = await screen.findByRole("group", { name: "How often" });
    await userEvent.click(within(often).getByText("3h"));
    fireEvent.click(await screen.findByText("Undo"));
    const sent = () => asked.filter((each) => each.method === "PATCH").map((each) => each.body);
    await waitFor(() => expect(sent()).toEqual([{ timing: "every 3h after finish" }, { timing: "daily 03:00" }]));
  });

  it("has no backfill where others say when it is due", async () => {
    stubServer({ ...answers, "GET /api/schedules/backup": { ...schedule, follows: true, timing: "after import" } });
    open();
    await screen.findByRole("button", { name: "Pause…" });
    expect(screen.queryByRole("button", { name: "Backfill…" })).toBeNull();
  });

  const sentTo = (asked: Asked[]) =>
    asked.filter((each) => each.method !== "GET").map((each) => [each.path.split("/").at(-1), each.body]);

  it("is off again with its reason when a preset that switched it on is taken back", async () => {
    const off = { ...schedule, timing: "daily 03:00", state: "off", enabled: false, off_note: "do not touch" };
    const asked = stubServer({
      ...answers,
      "GET /api/schedules/backup": off,
      "PATCH /api/schedules/backup": off,
      "POST /api/schedules/backup/disable": off,
    });
    open();
    const often = await screen.findByRole("group", { name: "How often" });
    await userEvent.click(within(often).getByText("12h"));
    fireEvent.click(await screen.findByText("Undo"));
    await waitFor(() =>
      expect(sentTo(asked)).toEqual([
        ["backup", { timing: "every 12h after finish", enabled: true }],
        ["disable", { note: "do not touch", keep_retries: true }],
        ["backup", { timing: "daily 03:00" }],
      ]),
    );
  });

  it("is off with one press, which can be taken back", async () => {
    const asked = stubServer({
      ...answers,
      "POST /api/schedules/backup/disable": schedule,
      "POST /api/schedules/backup/enable": schedule,
    });
    open();
    const often = await screen.findByRole("group", { name: "How often" });
    await userEvent.click(within(often).getByText("Off"));
    fireEvent.click(await screen.findByText("Undo"));
    await waitFor(() =>
      expect(sentTo(asked)).toEqual([
        ["disable", { keep_retries: true }],
        ["enable", undefined],
      ]),
    );
  });

  it("says that it is queued while none of its work is running", async () => {
    stubServer({ ...answers, "GET /api/schedules/backup": { ...schedule, running: 1, queued: 1 } });
    open();
    const heading = await screen.findByRole("heading", { level: 1 });
    expect(within(heading).getByText("queued")).toBeTruthy();
    expect(within(heading).queryByText("running")).toBeNull();
  });

  it("says that it is late", async () => {
    const late = { ...schedule, late: true, policy: { ...schedule.policy, fresh: "26h" } };
    stubServer({ ...answers, "GET /api/schedules/backup": late });
    open();
    expect(await screen.findByText("Late: it has not succeeded within 26h.")).toBeTruthy();
  });

  it("of a check-in makes its ping address, and another one only if that is meant", async () => {
    const asked = stubServer({
      ...answers,
      "GET /api/schedules/backup": { ...schedule, work: { kind: "check_in", late_after: "30m" } },
      "POST /api/schedules/backup/ping-key": ({ body }: Asked) =>
        (body as { new: boolean }).new
          ? { schedule: "backup", purpose: "ping", key: "second", path: "/ping/second" }
          : problem(409, "it has one"),
    });
    open();
    expect(await screen.findByText(/It is late after 30m/)).toBeTruthy();
    await userEvent.click(screen.getByRole("button", { name: "Make its ping address" }));
    await userEvent.click(await screen.findByRole("button", { name: "Make another" }));
    expect(await screen.findByText(/\/ping\/second$/)).toBeTruthy();
    expect(asked.filter((each) => each.path.endsWith("/ping-key")).length).toBe(2);
  });

  it("of code says who changed what, and gives it back", async () => {
    const changes = [
      { field: "enabled", value: "off", code: "off", by: null, at: "2026-11-16T03:00:00Z" },
      { field: "timing", value: "every 2h (UTC)", code: "every 1h (UTC)", by: "ada", at: "2026-11-16T03:00:00Z" },
    ];
    const coded = { ...schedule, owner: "code", origin: "shop", changes };
    const asked = stubServer({
      ...answers,
      "GET /api/schedules/backup": coded,
      "POST /api/schedules/backup/revert": { ...coded, changes: [] },
    });
    open();
    expect(await screen.findByText(/switched off by code/)).toBeTruthy();
    expect(screen.getByText(/timing by ada.*; code says every 1h/)).toBeTruthy();
    expect(screen.getAllByRole("button", { name: /Back to the code/ }).length).toBe(1);
    await userEvent.click(screen.getByRole("button", { name: "Back to the code’s timing" }));
    expect(await screen.findByText("backup is as the code says")).toBeTruthy();
    expect(asked.find((each) => each.path.endsWith("/revert"))?.body).toEqual({ fields: ["timing"] });
  });

  it("of code is removed only until its app starts again, and says so", async () => {
    const coded = { ...schedule, owner: "code", origin: "shop" };
    const asked = stubServer({
      ...answers,
      "GET /api/schedules/backup": coded,
      "DELETE /api/schedules/backup": null,
    });
    open();
    await userEvent.click(await screen.findByRole("button", { name: "More actions" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "Remove…" }));
    expect(await screen.findByText(/The code of app shop declares this schedule: it comes back/)).toBeTruthy();
    await userEvent.click(screen.getByRole("button", { name: "Remove it until then" }));
    expect(await screen.findByText("backup was removed")).toBeTruthy();
    expect(asked.find((each) => each.method === "DELETE")?.query.get("force")).toBe("true");
  });

  it("that is off says why and is enabled from there", async () => {
    const blocked_by = {
      cause: "off",
      sentence: "schedule 'backup' is switched off by ada (moving house)",
      since: null,
      until: null,
      command: "ostinato schedule enable backup",
      action: { verb: "schedule.enable", target: "backup", label: "Enable", arguments: {} },
      chain: [],
    };
    const off = { ...schedule, state: "off", enabled: false, off_note: "moving house", next_run_at: null, blocked_by };
    const asked = stubServer({
      ...answers,
      "GET /api/schedules/backup": off,
      "POST /api/schedules/backup/enable": { ...schedule, blocked_by: null },
    });
    open();
    expect(await screen.findByText("Schedule 'backup' is switched off by ada (moving house)")).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Pause…" })).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: "Enable" }));
    expect(await screen.findByText("backup is on")).toBeTruthy();
    expect(asked.some((each) => each.path === "/api/schedules/backup/enable")).toBe(true);
  });

  it("is paused with a reason, by a button or, where there is no room for it, in the menu", async () => {
    const asked = stubServer({ ...answers, "POST /api/schedules/backup/disable": { ...schedule, state: "off", enabled: false } });
    open();
    const button = await screen.findByRole("button", { name: "Pause…" });
    expect(button.className).toContain("max-md:hidden");
    screen.getByLabelText("More actions").focus();
    await userEvent.keyboard("{Enter}");
    expect((await screen.findByRole("menuitem", { name: "Pause…" })).className).toContain("md:hidden");
    await userEvent.keyboard("{Escape}");
    await userEvent.click(button);
    expect(await screen.findByText("Pause backup?")).toBeTruthy();
    expect(screen.getByRole("switch", { name: "Let retries go on" }).getAttribute("aria-checked")).toBe("false");
    expect(screen.getByText("Let a run that waits for another attempt go on; else it is cancelled")).toBeTruthy();
    await userEvent.type(screen.getByLabelText("Reason (optional)"), "moving house");
    await userEvent.click(screen.getByRole("button", { name: "Pause schedule" }));
    expect(await screen.findByText("backup is off")).toBeTruthy();
    expect(asked.find((each) => each.method === "POST")?.body).toEqual({ note: "moving house", keep_retries: false });
  });

  it("explains the mark of what differs from the default, where there is such a mark", async () => {
    stubServer(answers);
    const { unmount } = open();
    await screen.findByText("All policies");
    expect(screen.queryByText("differs from the default")).toBeNull();
    unmount();
    const changed = { ...schedule, policy: { ...schedule.policy, overlap: "allow" } };
    stubServer({ ...answers, "GET /api/schedules/backup": changed });
    open();
    expect(await screen.findByText("differs from the default")).toBeTruthy();
  });

  it("tells runs of a backfill apart by when they were due", async () => {
    stubServer({ ...answers, "GET /api/runs": { items: [{ ...run, due_at: "2026-11-15T07:53:00Z" }], next: null } });
    open("?runs=1");
    const due = (place: HTMLElement) => within(place).findByText(/^due/);
    expect((await due(await screen.findByRole("dialog"))).textContent).toMatch(/^due .*07:53/);
    expect((await screen.findByRole("dialog")).textContent).toContain("run 7");
  });

  it("that does not exist leads to the list", async () => {
    stubServer({ "GET /api/schedules/backup": problem(404, "there is no schedule 'backup'") });
    open();
    expect(await screen.findByText("there is no schedule 'backup'")).toBeTruthy();
    expect(screen.getByRole("heading", { level: 1 })).toBeTruthy();
    expect(screen.getByRole("link", { name: "All schedules" }).getAttribute("href")).toBe("/schedules");
  });

  it("offers to force a run that is refused because another is active", async () => {
    const trigger = (asked: Asked) =>
      (asked.body as { force?: boolean }).force === true ? run : problem(409, "run 6 of 'backup' is still active");
    const asked = stubServer({ ...answers, "POST /api/schedules/backup/trigger": trigger });
    open();
    await userEvent.click(await screen.findByText("Run now"));
    expect(await screen.findByText("run 6 of 'backup' is still active")).toBeTruthy();
    await userEvent.click(screen.getByText("Run anyway"));
    expect(await screen.findByText("Run 7 is queued")).toBeTruthy();
    expect(asked.filter((each) => each.method === "POST").map((each) => each.body)).toEqual([{}, { force: true }]);
  });

  it("opens the run log with totals over the page, and keeps it in the address", async () => {
    stubServer(answers);
    const { router } = open();
    await userEvent.click(await screen.findByText("Runs"));
    const dialog = await screen.findByRole("dialog");
    expect(router.state.location.search).toEqual({ runs: "1" });
    expect((await within(dialog).findByText("copied", { exact: false })).textContent).toBe("copied 12");
    expect(within(dialog).getByText("9 s")).toBeTruthy();
  });

  it("says in the run log what to type when there are no runs, and how to see others", async () => {
    stubServer({ ...answers, "GET /api/runs": { items: [], next: null } });
    open("?runs=1");
    const dialog = await screen.findByRole("dialog");
    expect(await within(dialog).findByText("ostinato schedule trigger backup --db sqlite:////srv/jobs.db")).toBeTruthy();
    await userEvent.selectOptions(within(dialog).getByLabelText("State"), "failed");
    await userEvent.click(await within(dialog).findByText("Show any state"));
    expect(await within(dialog).findByText("No runs yet")).toBeTruthy();
  });

  it("marks the days on which something failed or had errors with more than a colour", async () => {
    const today = new Date().toISOString().slice(0, 10);
    async function marks(states: Record<string, number>, with_errors = 0): Promise<string> {
      const days = [{ date: today, states, with_errors, seconds: 9 }];
      stubServer({ ...answers, "GET /api/schedules/backup/history": { zone: "UTC", days } });
      const { unmount } = open();
      const drawn = (await screen.findByTestId("marked-days")).getAttribute("d") ?? "";
      unmount();
      return drawn;
    }
    expect(await marks({ succeeded: 3, failed: 1 }, 1)).toMatch(/^M.*L.*M.*L/); // a cross
    expect(await marks({ succeeded: 3 }, 1)).toMatch(/^M[\d. ]+h[\d.]+$/); // a stroke
    expect(await marks({ succeeded: 3 })).toBe("");
  });

  it("has every colour of a day in the legend of its map, and says what each means", async () => {
    stubServer(answers);
    open();
    const legend = await screen.findByTestId("legend");
    const colours = [...legend.querySelectorAll("rect")].map((each) => each.getAttribute("fill"));
    expect(colours).toHaveLength(16);
    const day = screen.getByLabelText("Mon 16 Nov 2026: 1 run, 1 succeeded").getAttribute("fill");
    expect(colours).toContain(day);
    expect(legend.textContent).toBe(
      "succeededsomething had errorssomething failedcancelled or not executedthe stronger, the more runs",
    );
  });

  it("looks before it backfills", async () => {
    const asked = stubServer({
      ...answers,
      "POST /api/schedules/backup/backfill": {
        due: ["2026-11-14T03:00:00Z", "2026-11-15T03:00:00Z"],
        runs: [8, 9],
        left_out: 1,
      },
    });
    open();
    await userEvent.click(await screen.findByRole("button", { name: "Backfill…" }));
    fireEvent.change(await screen.findByLabelText("From (your time)"), { target: { value: "2026-11-14T00:00" } });
    await userEvent.click(screen.getByText("Preview"));
    expect(await screen.findByText("2 due times will be run")).toBeTruthy();
    await userEvent.click(screen.getByText("Run 2 due times"));
    await waitFor(() =>
      expect(
        asked.filter((each) => each.method === "POST").map((each) => (each.body as { dry_run: boolean }).dry_run),
      ).toEqual([true, false]),
    );
  });

  it("tells why it is broken and gives both ways back", async () => {
    const broken = {
      ...schedule,
      state: "broken",
      enabled: false,
      broken: "3 scheduled runs failed in a row; the last: \u001b[31mdisk full\u001b[0m",
      next_run_at: null,
      next_run_reason: "broken: …",
      blocked_by: {
        cause: "broken",
        sentence: "schedule 'backup' is broken: 3 scheduled runs failed in a row; the last: \u001b[31mdisk full\u001b[0m",
        since: null,
        until: null,
        command: "ostinato schedule enable backup",
        action: { verb: "schedule.enable", target: "backup", label: "Re-enable", arguments: {} },
        chain: [],
      },
    };
    const asked = stubServer({
      ...answers,
      "GET /api/schedules/backup": broken,
      "POST /api/schedules/backup/enable": problem(409, "a check of 'backup' failed", {
        checks: { disk: "only 2 % free" },
      }),
    });
    open();
    expect(await screen.findByText("Schedule 'backup' is broken: 3 scheduled runs failed in a row; the last: disk full")).toBeTruthy();
    expect(await screen.findByText(/^ostinato schedule enable backup/)).toBeTruthy();
    // A preset would lose the reason, and so would a press on Off without a question.
    const often = within(screen.getByRole("group", { name: "How often" }));
    await userEvent.click(often.getByText("12h"));
    expect(often.getByText("Off").getAttribute("aria-pressed")).toBe("false");
    await userEvent.click(often.getByText("Off"));
    expect(await screen.findByText("Pause backup?")).toBeTruthy();
    await userEvent.keyboard("{Escape}");
    expect(asked.every((each) => each.method === "GET")).toBe(true);
    expect(screen.getByText("Fix and re-enable").getAttribute("href")).toBe("/schedules/backup/edit?fix=1");
    await userEvent.click(screen.getByText("Re-enable"));
    expect(await screen.findByText("backup could not be enabled")).toBeTruthy();
    expect(asked.some((each) => each.path.endsWith("/enable"))).toBe(true);
  });
});
