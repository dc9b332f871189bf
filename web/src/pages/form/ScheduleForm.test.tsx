import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import { browserZone, zoneChoice } from "@/state/zone";
import { sampleCalendar, samplePolicy, sampleSchedule, sampleShell } from "@/testing/samples";
import { ME, problem, stubServer } from "@/testing/server";
import { renderPage } from "@/testing/render";
import { ScheduleFormPage } from "./ScheduleFormPage";

const preview = {
  text: "every 5m",
  zone: "Europe/Berlin",
  sentence: "Every 5 minutes.",
  next: ["2099-01-01T10:00:00Z"],
  remarks: ["On 2027-03-28 02:30 does not exist."],
};
const empty = { items: [] };
const lists = {
  "GET /api/projects": empty,
  "GET /api/tasks": { items: [{ name: "mail", nodes: ["n1"], schedules: [], schedule_count: 0 }] },
  "GET /api/lanes": empty,
};
const schedule = sampleSchedule({
  id: 3,
  name: "backup",
  sentence: "At 03:00 every day.",
  version: 4,
  work: sampleShell(),
  policy: samplePolicy({ timeout: "5m" }),
});

const fill = (field: HTMLElement, value: string) => fireEvent.change(field, { target: { value } });
const open = () => renderPage(ScheduleFormPage, { route: "/schedules/new" });
const edit = (search = "") =>
  renderPage(ScheduleFormPage, { route: "/schedules/$name/edit", at: `/schedules/backup/edit${search}` });

afterEach(() => zoneChoice.set("browser"));

describe("the form of a new schedule", () => {
  it("says what is wrong with a field when it is left, in its own words, and no more while it is mended", async () => {
    const asked = stubServer({ ...lists, "GET /api/channels": { items: [{ name: "phone", url: "json://x", error: null }] } });
    open();
    await screen.findByLabelText("Name");
    const leave = (label: string, value: string): void => {
      const field = screen.getByLabelText(label);
      fill(field, value);
      fireEvent.blur(field);
    };
    await screen.findByRole("button", { name: "phone", hidden: true });
    const nonsense: Record<string, string> = {
      "Catch-up window": "1y",
      "Catch-up cap": "many",
      Retry: "-1",
      "First delay": "soon",
      "Longest delay": "90",
      Timeout: "five minutes",
      Priority: "high",
      "Gate timeout": "long",
      "Dollars a run": "much",
      "Dollars a day": "0",
      "Runs a day": "2.5",
      Notify: "fax=failed",
      "Keep for": "ever",
      "Keep at most": "0",
      "Runs left": "0",
      Nice: "20",
      Memory: "much",
    };
    for (const [label, value] of Object.entries(nonsense)) leave(label, value);
    const errorOf = (label: string) =>
      document.getElementById(`${screen.getByLabelText(label).id}-error`)?.textContent ?? null;
    for (const label of Object.keys(nonsense)) expect(errorOf(label)).toMatch(new RegExp(`^${label} `));
    expect(errorOf("Catch-up window")).toBe("Catch-up window is a length of time, such as 90s, 5m, 1h30m or 2d.");
    expect(errorOf("Longest delay")).toBe("Longest delay needs a unit, such as 90s or 90m.");
    expect(errorOf("Retry")).toBe("Retry is a whole number from 0, such as 3.");
    expect(errorOf("Runs left")).toBe("Runs left is a whole number from 1, such as 3.");
    expect(errorOf("Notify")).toBe("Notify names fax, which is no channel. Choose from phone.");
    fill(screen.getByLabelText("Retry"), "2");
    expect(errorOf("Retry")).toBeNull();
    await userEvent.click(screen.getByText("Create schedule"));
    expect(Object.keys(nonsense).filter((label) => errorOf(label) === null)).toEqual(["Retry"]);
    expect(errorOf("Command")).toBe("Enter a command, such as echo hello.");
    expect(errorOf("Name")).toBe("Enter a name, such as backup.");
    expect(asked.filter((each) => each.method === "POST")).toEqual([]);
  });

  it("says that no schedule can be called so when the name is left", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/schedules/3": schedule,
      "GET /api/schedules/backup": schedule,
    });
    open();
    const name = await screen.findByLabelText("Name");
    const errorOf = () => document.getElementById(`${name.id}-error`)?.textContent ?? null;
    const leave = (value: string): void => {
      fill(name, value);
      fireEvent.blur(name);
    };
    const nonsense = { "..": "means another place", ["n".repeat(201)]: "at most 200", "a\u202eb": "cannot be seen" };
    for (const [value, words] of Object.entries(nonsense)) {
      leave(value);
      expect(errorOf()).toContain(words);
    }
    leave("💾".repeat(150));
    expect(errorOf()).toBeNull();
    leave("backup");
    await screen.findByText("A schedule of this name already exists.");
    leave("3"); // which is the id of another
    await waitFor(() => expect(asked.some(({ path }) => path === "/api/schedules/3")).toBe(true));
    expect(errorOf()).toBeNull();
    leave("backup");
    fill(name, "backup2");
    await waitFor(() => expect(asked.filter(({ path }) => path === "/api/schedules/backup")).toHaveLength(2));
    expect(errorOf()).toBeNull();
  });

  it("offers the tasks that can be run, and none that only a schedule names", async () => {
    const task = { schedules: [], schedule_count: 1, nodes: [], app: false };
    stubServer({
      ...lists,
      "GET /api/tasks": { items: [{ ...task, name: "mail", app: true }, { ...task, name: "nosuch" }] },
    });
    open();
    await userEvent.click(await screen.findByRole("tab", { name: "Task" }));
    const offered = () => [...document.querySelectorAll("datalist#known-tasks option")].map((each) => each.getAttribute("value"));
    await waitFor(() => expect(offered()).toEqual(["mail"]));
    fill(screen.getByRole("combobox", { name: "Task" }), "nosuch");
    expect(await screen.findByText(/No node knows this task/)).toBeTruthy();
  });

  it("has a failed check at its field, and no gate timeout without a gate", async () => {
    const checks = { disk: "no check of this name is registered here" };
    const refused = problem(409, "checks failed", { checks });
    stubServer({ ...lists, "GET /api/timings/preview": preview, "POST /api/schedules": refused });
    open();
    fill(await screen.findByLabelText("Name"), "a");
    fill(screen.getByLabelText("Timing"), "every 5m");
    fill(screen.getByLabelText("Command"), "true");
    fill(screen.getByLabelText("Checks"), "disk");
    fill(screen.getByLabelText("Gate timeout"), "10s");
    await userEvent.click(screen.getByText("Create schedule"));
    expect(await screen.findByText(/^Gate timeout does nothing without a gate/)).toBeTruthy();
    fill(screen.getByLabelText("Gate timeout"), "");
    await userEvent.click(screen.getByText("Create schedule"));
    const field = screen.getByLabelText("Checks");
    await waitFor(() => expect(document.getElementById(`${field.id}-error`)?.textContent).toBe(`disk: ${checks.disk}`));
  });

  it("tells what the server says of a policy by the label of its field", async () => {
    const errors = [{ field: "policy.silent", message: "silent cannot be zero", hint: "give 30s", position: null }];
    stubServer({ ...lists, "GET /api/timings/preview": preview, "POST /api/schedules": problem(422, "no", { errors }) });
    open();
    fill(await screen.findByLabelText("Name"), "a");
    fill(screen.getByLabelText("Timing"), "every 5m");
    fill(screen.getByLabelText("Command"), "true");
    await userEvent.click(screen.getByText("Create schedule"));
    expect(await screen.findByText(/^Silent cannot be zero/)).toBeTruthy();
  });

  it("creates one from a typed timing, with the preview of the server, and only if the name is free", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/timings/preview": preview,
      "POST /api/schedules": { ...schedule, name: "hello" },
    });
    const { router } = open();
    const user = userEvent.setup();
    fill(await screen.findByLabelText("Name"), "hello");
    await user.type(screen.getByLabelText("Timing"), "every 5m");
    fill(screen.getByLabelText("Command"), "echo hello");
    expect(await screen.findByText("Every 5 minutes.")).toBeTruthy();
    expect(screen.getByText(/does not exist/)).toBeTruthy();
    expect(screen.getByLabelText<HTMLInputElement>("How many").value).toBe("5");
    await user.click(screen.getByText("Create schedule"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/hello"));
    const sent = asked.find((each) => each.method === "POST");
    expect(sent?.body).toEqual({ name: "hello", timing: "every 5m", work: { kind: "shell", command: "echo hello" } });
    expect(sent?.headers.get("If-None-Match")).toBe("*");
  });

  it("keeps the typed timing while tabs are looked into, and changes it when a field is filled in", async () => {
    stubServer({ ...lists, "GET /api/timings/preview": preview });
    open();
    const user = userEvent.setup();
    const timing = await screen.findByLabelText<HTMLInputElement>("Timing");
    await user.type(timing, "weekdays 09:30 except 12-25");
    for (const name of ["Cron", "At", "Daily, weekly, monthly", "Every"]) {
      await user.click(screen.getByRole("tab", { name }));
      expect(screen.getByRole("tab", { name }).getAttribute("aria-selected")).toBe("true");
      expect(screen.getByText(/These fields cannot show/).textContent).toContain("weekdays 09:30 except 12-25");
      expect(timing.value).toBe("weekdays 09:30 except 12-25");
    }
    await user.selectOptions(screen.getByLabelText("Unit"), "h");
    expect(timing.value).toBe("weekdays 09:30 except 12-25");
    await user.type(screen.getByLabelText("How many"), "12");
    expect(timing.value).toBe("every 12h");
    expect(screen.queryByText(/These fields cannot show/)).toBeNull();
    await user.click(screen.getByRole("tab", { name: "Cron" }));
    await user.type(screen.getByLabelText("minute"), "5");
    expect(timing.value).toBe("5 * * * *");
    await user.clear(timing);
    await user.type(timing, "daily 03:00");
    expect(screen.getByLabelText<HTMLInputElement>("Time").value).toBe("03:00");
    expect(screen.getByRole("tab", { name: "Daily, weekly, monthly", selected: true })).toBeTruthy();
  });

  it("is not shown to somebody who may only look", async () => {
    stubServer({ ...lists, "GET /api/me": { ...ME, role: "viewer" } });
    open();
    expect(await screen.findByText("Only an operator or an admin may do this; you are a viewer.")).toBeTruthy();
    expect(screen.queryByLabelText("Timing")).toBeNull();
  });

  it("leaves out the days of a calendar with one press, and keeps that whatever the tabs fill in", async () => {
    const calendars = { items: [sampleCalendar(), sampleCalendar({ name: "sales team" })], zone: "UTC" };
    stubServer({ ...lists, "GET /api/timings/preview": preview, "GET /api/calendars": calendars });
    open();
    const user = userEvent.setup();
    const timing = await screen.findByLabelText<HTMLInputElement>("Timing");
    const days = within(await screen.findByRole("group", { name: "Leave out the days of" }));
    expect(days.getByText("office").getAttribute("aria-disabled")).toBe("true"); // of no timing
    await user.type(timing, "daily 09:00");
    await user.click(days.getByText("office"));
    await user.click(days.getByText("sales team"));
    expect(timing.value).toBe('daily 09:00 except calendar(office) except calendar("sales team")');
    fill(screen.getByLabelText("Time"), "10:30");
    expect(timing.value).toBe('daily 10:30 except calendar(office) except calendar("sales team")');
    await user.click(days.getByText("office"));
    expect(timing.value).toBe('daily 10:30 except calendar("sales team")');
    expect(days.getByText("office").getAttribute("aria-pressed")).toBe("false");
  });

  it("offers to make a calendar that a timing names and that is not there", async () => {
    const items: ReturnType<typeof sampleCalendar>[] = [];
    stubServer({
      ...lists,
      "GET /api/timings/preview": preview,
      "GET /api/calendars": () => ({ items, zone: "UTC" }),
      "PUT /api/calendars/plant": () => {
        items.push(sampleCalendar({ name: "plant" }));
        return items[0];
      },
    });
    open();
    const user = userEvent.setup();
    await user.type(await screen.findByLabelText("Timing"), "daily 09:00 except calendar(plant)");
    await user.click(await screen.findByText("Make calendar plant"));
    const dialog = within(await screen.findByRole("dialog"));
    expect(dialog.getByLabelText<HTMLInputElement>("Name").value).toBe("plant");
    await user.click(dialog.getByText("Make calendar"));
    await screen.findByText("Calendar plant is made");
    expect((await screen.findByRole("button", { name: "plant" })).getAttribute("aria-pressed")).toBe("true");
    expect(screen.getByLabelText<HTMLInputElement>("Timing").value).toBe("daily 09:00 except calendar(plant)");
  });

  it("names the zone of the times in the preview, and lists UTC once", async () => {
    const tokyo = { ...preview, zone: "Asia/Tokyo" };
    stubServer({ ...lists, "GET /api/me": { ...ME, zone: "Etc/UTC" }, "GET /api/timings/preview": tokyo });
    open();
    const user = userEvent.setup();
    await user.type(await screen.findByLabelText("Timing"), "every 5m");
    const named = await screen.findByText(/^Next, in/);
    expect(named.textContent).toBe(`Next, in ${browserZone()}`);
    act(() => zoneChoice.set("schedule"));
    expect(named.textContent).toBe("Next, in Asia/Tokyo");
    const time = document.querySelector('time[datetime="2099-01-01T10:00:00Z"]');
    expect(time?.textContent).toContain("19:00");
    // What ticks is not read out.
    expect(time?.closest("[aria-live]")).toBeNull();
    expect(screen.getByText("Every 5 minutes.").closest("[aria-live]")).toBeTruthy();
    const zones = screen.getByLabelText("Zone");
    fireEvent.focus(zones);
    await within(zones).findByText("Europe/Paris");
    const utc = within(zones).getAllByText(/UTC|Zulu/);
    expect(utc.map((each) => each.textContent)).toEqual(["Etc/UTC (default)"]);
  });

  it("marks the place of an error in the timing and offers what is right", async () => {
    const wrong = problem(422, "no", {
      errors: [{ field: "text", message: "'evry' does not begin a timing", hint: "every 5m", position: 0 }],
    });
    stubServer({
      ...lists,
      "GET /api/timings/preview": (asked: { query: URLSearchParams }) =>
        asked.query.get("text") === "evry 5m" ? wrong : preview,
    });
    open();
    const user = userEvent.setup();
    await user.type(await screen.findByLabelText("Timing"), "evry 5m");
    expect((await screen.findByTestId("marker")).textContent).toBe("evry 5m\n^^^^");
    expect(screen.getByText("'evry' does not begin a timing")).toBeTruthy();
    await user.click(screen.getByText("Use this"));
    expect(screen.getByLabelText<HTMLInputElement>("Timing").value).toBe("every 5m");
    expect(await screen.findByText("Every 5 minutes.")).toBeTruthy();
  });

  it("puts the server's errors at their fields and the focus on the first", async () => {
    const refused = problem(422, "no", {
      errors: [
        { field: "policy.timeout", message: "timeout 'x' is not a duration" },
        { field: "work.command", message: "the command is no command", hint: "such as echo hello" },
      ],
    });
    stubServer({ ...lists, "GET /api/timings/preview": preview, "POST /api/schedules": refused });
    open();
    const user = userEvent.setup();
    fill(await screen.findByLabelText("Name"), "a");
    fill(screen.getByLabelText("Command"), "x");
    await user.click(screen.getByText("6h"));
    await user.click(screen.getByText("Create schedule"));
    expect(await screen.findByText("the command is no command")).toBeTruthy();
    expect(screen.getByText("Timeout 'x' is not a duration")).toBeTruthy();
    const command = screen.getByLabelText("Command");
    await waitFor(() => expect(document.activeElement).toBe(command));
    // Mending the first does not take the focus to the second.
    await user.type(command, "echo");
    expect(screen.queryByText("the command is no command")).toBeNull();
    expect(document.activeElement).toBe(command);
    expect(screen.getByLabelText<HTMLTextAreaElement>("Command").value).toBe("xecho");
  });

  it("says that the name is taken, and asks nothing of the server without a name", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/timings/preview": preview,
      "POST /api/schedules": problem(412, "there is one"),
    });
    open();
    const user = userEvent.setup();
    await user.click(await screen.findByText("1h"));
    fill(screen.getByLabelText("Command"), "x");
    await user.click(screen.getByText("Create schedule"));
    expect(await screen.findByText("Enter a name, such as backup.")).toBeTruthy();
    expect(asked.some((each) => each.method === "POST")).toBe(false);
    fill(screen.getByLabelText("Name"), "backup");
    await user.click(screen.getByText("Create schedule"));
    expect(await screen.findByText("A schedule of this name already exists.")).toBeTruthy();
  });

  it("tells an operator that shell work is for admins", async () => {
    stubServer({ ...lists, "GET /api/me": { ...ME, role: "operator" }, "GET /api/timings/preview": preview });
    open();
    const blocked = () => screen.getByText("Create schedule").getAttribute("aria-disabled");
    await screen.findByText("Create schedule");
    await waitFor(() => expect(blocked()).toBe("true"));
    await userEvent.click(screen.getByText("HTTP"));
    await waitFor(() => expect(blocked()).toBeNull());
  });
});

describe("the form of a schedule that exists", () => {
  it("sends only what was changed, with its version", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/timings/preview": preview,
      "GET /api/schedules/backup": schedule,
      "PATCH /api/schedules/backup": { ...schedule, version: 5 },
    });
    const { router } = edit();
    const user = userEvent.setup();
    await user.click(await screen.findByText("12h"));
    await user.click(screen.getByText("Save"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/backup"));
    const sent = asked.find((each) => each.method === "PATCH");
    expect(sent?.body).toEqual({ timing: "every 12h after finish" });
    expect(sent?.headers.get("If-Match")).toBe('"3.4"');
  });

  it("says of one that code declares how long a change stays", async () => {
    stubServer({ ...lists, "GET /api/schedules/backup": { ...schedule, owner: "code", origin: "shop" } });
    edit();
    expect(await screen.findByText(/stays until the code changes that field/)).toBeTruthy();
  });

  it("shows what somebody else changed, and can save over it", async () => {
    const theirs = { ...schedule, version: 9, timing: "daily 05:00" };
    let reads = 0;
    const asked = stubServer({
      ...lists,
      "GET /api/timings/preview": preview,
      "GET /api/schedules/backup": () => ((reads += 1) === 1 ? schedule : theirs),
      "PATCH /api/schedules/backup": (one: { headers: Headers }) =>
        one.headers.get("If-Match") === '"3.9"' ? { ...theirs, version: 10 } : problem(412, "version", { version: 9 }),
    });
    const { router } = edit();
    const user = userEvent.setup();
    await user.click(await screen.findByText("12h"));
    await user.click(screen.getByText("Save"));
    const note = await screen.findByText("Somebody else changed this schedule while you edited it");
    expect(within(note.closest('[role="alert"]')!).getByText(/you: every 12h after finish/)).toBeTruthy();
    await user.click(screen.getByText("Save mine"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/backup"));
    expect(asked.filter((each) => each.method === "PATCH").map((each) => each.headers.get("If-Match"))).toEqual([
      '"3.4"',
      '"3.9"',
    ]);
  });

  it("shows what broke it, and switches it on again when it is saved", async () => {
    const broken = {
      ...schedule,
      enabled: false,
      broken: "3 failures in a row",
      last_run: { id: 7, error: "exit code 2" },
    };
    const asked = stubServer({
      ...lists,
      "GET /api/timings/preview": preview,
      "GET /api/schedules/backup": broken,
      "PATCH /api/schedules/backup": { ...schedule, version: 5 },
    });
    const { router } = edit("?fix=1");
    const user = userEvent.setup();
    expect(await screen.findByText("Broken: 3 failures in a row")).toBeTruthy();
    expect(screen.getByText("exit code 2")).toBeTruthy();
    const command = screen.getByLabelText("Command");
    fill(command, "true");
    await user.click(screen.getByText("Save and re-enable"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/backup"));
    const changes = asked.filter((each) => each.method !== "GET");
    expect(changes.map((each) => `${each.method} ${each.path}`)).toEqual(["PATCH /api/schedules/backup"]);
    expect(changes[0]?.body).toMatchObject({ enabled: true });
  });

  it("asks before unsaved changes are lost", async () => {
    stubServer({ ...lists, "GET /api/timings/preview": preview, "GET /api/schedules/backup": schedule });
    const { router } = edit();
    const user = userEvent.setup();
    fill(await screen.findByLabelText("Note (optional)"), "x");
    await user.click(screen.getByText("Cancel"));
    expect(await screen.findByText("Leave without saving?")).toBeTruthy();
    expect(router.state.location.pathname).toBe("/schedules/backup/edit");
    await user.click(screen.getByText("Leave"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/backup"));
  });
});
