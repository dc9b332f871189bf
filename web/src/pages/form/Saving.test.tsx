import { fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { whenLoggedOut } from "@/api/client";
import { keys } from "@/api/keys";
import { keepOriginKey } from "@/api/originKey";
import { toLogin } from "@/state/toLogin";
import { renderPage } from "@/testing/render";
import { samplePolicy, sampleSchedule, sampleShell } from "@/testing/samples";
import { type Asked, ME, problem, stubServer } from "@/testing/server";
import { ScheduleFormPage } from "./ScheduleFormPage";

const schedule = sampleSchedule({
  id: 3,
  name: "backup",
  zone: "Asia/Tokyo",
  version: 4,
  work: sampleShell(),
  policy: samplePolicy({ timeout: "5m" }),
});
const empty = { items: [] };
const answers = {
  "GET /api/projects": empty,
  "GET /api/tasks": empty,
  "GET /api/lanes": empty,
  "GET /api/timings/preview": problem(503, "busy"),
  "GET /api/schedules/backup": schedule,
};
const edit = (search = "") =>
  renderPage(ScheduleFormPage, { route: "/schedules/$name/edit", at: `/schedules/backup/edit${search}` });
const command = () => screen.findByLabelText<HTMLTextAreaElement>("Command");
const write = async (text: string) => fireEvent.change(await command(), { target: { value: text } });
const patches = (asked: Asked[]) => asked.filter((each) => each.method === "PATCH");

afterEach(() => whenLoggedOut(() => undefined));

describe("saving", () => {
  it("can go back to the default zone", async () => {
    const asked = stubServer({ ...answers, "PATCH /api/schedules/backup": { ...schedule, version: 5 } });
    const { router } = edit();
    await screen.findByText("Europe/Berlin (default)");
    await userEvent.selectOptions(screen.getByLabelText("Zone"), "Europe/Berlin (default)");
    await userEvent.click(screen.getByText("Save"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/backup"));
    expect(patches(asked)[0]?.body).toEqual({ zone: "Europe/Berlin" });
  });

  it("keeps what was typed when the login has ended, and saves it once there is another", async () => {
    let token: string | null = "old";
    keepOriginKey(token);
    const member = (one: Asked, answer: unknown) =>
      one.headers.get("X-Origin-Key") === token ? answer : problem(401, "log in");
    const asked = stubServer({
      ...answers,
      "GET /api/me": (one: Asked) => member(one, ME),
      "GET /api/lanes": (one: Asked) => member(one, empty),
      "PATCH /api/schedules/backup": (one: Asked) => member(one, { ...schedule, version: 5 }),
    });
    const { router, cache } = edit();
    whenLoggedOut(toLogin(router, cache));
    const navigate = vi.spyOn(router, "navigate");
    await write("true");
    token = null;
    // A list that is loaded behind the form finds it out first, and asks; another one does not ask again.
    void cache.invalidateQueries({ queryKey: keys.lanes });
    expect(await screen.findByText(/Your login has ended/)).toBeTruthy();
    await userEvent.click(screen.getByText("Go back"));
    await cache.invalidateQueries({ queryKey: keys.lanes });
    expect(navigate).toHaveBeenCalledOnce();
    // Whoever saves is asked again.
    await userEvent.click(screen.getByText("Save"));
    expect(await screen.findByText(/Your login has ended/)).toBeTruthy();
    expect(router.state.location.pathname).toBe("/schedules/backup/edit");
    await userEvent.click(screen.getByText("Go back"));
    expect((await command()).value).toBe("true");
    token = "new";
    keepOriginKey(token); // made in another tab
    await userEvent.click(screen.getByText("Save"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/backup"));
    expect(patches(asked)).toHaveLength(2);
    // Another time on the same page, with nothing to lose: the way is free.
    await router.navigate({ to: "/schedules/$name/edit", params: { name: "backup" } });
    await command();
    token = null;
    void cache.invalidateQueries({ queryKey: keys.lanes });
    await waitFor(() => expect(router.state.location.pathname).toBe("/login"));
  });

  it("says beside the button what stood in its way", async () => {
    stubServer({ ...answers, "PATCH /api/schedules/backup": problem(503, "the database is away") });
    edit();
    await write("true");
    await userEvent.click(screen.getByText("Save"));
    const note = await screen.findByText("the database is away");
    expect(note.closest(".sticky")?.contains(screen.getByText("Save"))).toBe(true);
  });
});

describe("a broken schedule that is saved and cannot be switched on", () => {
  const broken = { ...schedule, enabled: false, broken: "3 failures in a row" };

  it("changes nothing while a check refuses it", async () => {
    let refuses = true;
    const asked = stubServer({
      ...answers,
      "GET /api/schedules/backup": broken,
      "PATCH /api/schedules/backup": () => (refuses ? problem(409, "a check failed") : { ...schedule, version: 7 }),
    });
    const { router } = edit("?fix=1");
    await write("false");
    await userEvent.click(screen.getByText("Save and re-enable"));
    expect(await screen.findByText("a check failed")).toBeTruthy();
    expect(screen.getByText("Unsaved changes")).toBeTruthy();
    refuses = false;
    await userEvent.click(screen.getByText("Save and re-enable"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/backup"));
    for (const each of patches(asked)) {
      expect(each.body).toMatchObject({ enabled: true, work: { command: "false" } });
    }
    expect(asked.some((each) => each.path.endsWith("/enable"))).toBe(false);
  });

  it("stays off when that is chosen", async () => {
    const asked = stubServer({
      ...answers,
      "GET /api/schedules/backup": broken,
      "PATCH /api/schedules/backup": { ...broken, version: 5 },
    });
    const { router } = edit("?fix=1");
    await userEvent.click(await screen.findByText("Off"));
    expect(screen.getByText("The schedule will be saved switched off.")).toBeTruthy();
    await userEvent.click(screen.getByText("Save"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/backup"));
    expect(patches(asked).map((each) => each.body)).toEqual([{ enabled: false }]);
  });
});
