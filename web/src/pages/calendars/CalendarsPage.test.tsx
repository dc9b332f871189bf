import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { sampleCalendar } from "@/testing/samples";
import { renderPage } from "@/testing/render";
import { ME, problem, stubServer } from "@/testing/server";
import { CalendarsPage } from "./CalendarsPage";

const office = sampleCalendar();
const calendars = (...items: ReturnType<typeof sampleCalendar>[]) => ({ "GET /api/calendars": { items, zone: "UTC" } });
const open = (at = "/calendars") => renderPage(CalendarsPage, { route: "/calendars", at });
const dialog = () => within(screen.getByRole("dialog"));
const dates = () => screen.getByLabelText<HTMLTextAreaElement>("Add dates");

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-11-19T12:00:00Z"), shouldAdvanceTime: true });
  return () => vi.useRealTimers();
});

const user = userEvent.setup({ advanceTimers: (milliseconds) => vi.advanceTimersByTime(milliseconds) });

it("shows how many dates there are, which is next, and who uses them", async () => {
  stubServer(calendars(office, sampleCalendar({ name: "old", dates: ["2020-01-01"], past: true, schedules: [] })));
  open();
  const card = within(await screen.findByRole("region", { name: "office" }));
  expect(card.getByText("· in 35 days").parentElement?.textContent).toBe("Thu 2026-12-24 · in 35 days");
  expect(within(card.getByRole("list", { name: "Dates", hidden: true })).getByText("12-24 every year")).toBeTruthy();
  expect(card.getByText("the days on which we are closed")).toBeTruthy();
  expect(card.getByRole("link", { name: "report" }).getAttribute("href")).toBe("/schedules/report");
  expect(card.getByText("(passed)").parentElement?.textContent).toBe("Tue 2026-01-06 (passed)");
  const old = within(screen.getByRole("region", { name: "old" }));
  expect(old.getByText("none")).toBeTruthy();
  expect(old.getByText("no schedule")).toBeTruthy();
  expect(screen.getByText("all dates have passed")).toBeTruthy();
});

it("names the first of many schedules, and all of them when asked", async () => {
  const schedules = Array.from({ length: 12 }, (_, index) => `job-${index}`);
  stubServer(calendars(sampleCalendar({ schedules })));
  open();
  await user.click(await screen.findByRole("button", { name: "and 4 more" }));
  expect(screen.getAllByRole("link", { name: /^job-/ })).toHaveLength(12);
});

it("shows the dates of the calendar that a link names", async () => {
  stubServer(calendars(office, sampleCalendar({ name: "plant" })));
  open("/calendars?calendar=plant");
  const plant = await screen.findByRole("region", { name: "plant" });
  expect(plant.querySelector("details")?.open).toBe(true);
  expect(screen.getByRole("region", { name: "office" }).querySelector("details")?.open).toBe(false);
});

it("says how to make the first one", async () => {
  stubServer(calendars());
  open();
  await screen.findByText("There are no calendars yet");
  expect(await screen.findByText(/ostinato calendar set office/)).toBeTruthy();
});

it("makes one of dates that were pasted", async () => {
  const asked = stubServer({ ...calendars(office), "PUT /api/calendars/plant": sampleCalendar({ name: "plant", schedules: [] }) });
  open();
  await user.click(await screen.findByRole("button", { name: "New calendar" }));
  await user.click(dates());
  await user.paste("2027-03-26, 12-24\n2026-12-31");
  await user.type(screen.getByLabelText("Note"), "when it stands still");
  await user.type(screen.getByLabelText("Name"), "plant");
  await user.click(screen.getByRole("button", { name: "Make calendar" }));
  await screen.findByText("Calendar plant is made");
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(asked.find((one) => one.method === "PUT")?.body).toEqual({
    dates: ["12-24", "2026-12-31", "2027-03-26"],
    note: "when it stands still",
    version: 0,
  });
});

it("says before anything is sent what is no date, and that a name is taken", async () => {
  const asked = stubServer(calendars(office));
  open();
  await user.click(await screen.findByRole("button", { name: "New calendar" }));
  await user.type(screen.getByLabelText("Name"), "office");
  expect(screen.getByText("There is a calendar office already.")).toBeTruthy();
  await user.click(dates());
  await user.paste("2026-12-24\n24.12.2027");
  await screen.findByText("There is no date “24.12.2027”."); // without being asked
  await user.click(screen.getByRole("button", { name: "Make calendar" }));
  expect(document.activeElement).toBe(dates());
  expect(dialog().getByText(/Did you mean 2027-12-24\?/)).toBeTruthy();
  await user.click(screen.getByRole("button", { name: "Add to the list" }));
  expect(dates().value).toBe("24.12.2027");
  expect(dialog().getByText("Thu 2026-12-24")).toBeTruthy();
  await user.clear(dates());
  await user.click(screen.getByRole("button", { name: "Make calendar" }));
  expect(asked.every((one) => one.method === "GET")).toBe(true);
});

it("refuses more dates than a calendar may have", async () => {
  const asked = stubServer(calendars(office));
  open();
  await user.click(await screen.findByRole("button", { name: "Change calendar office" }));
  const all = Array.from({ length: 1000 }, (_, index) => new Date(index * 86_400_000).toISOString().slice(0, 10));
  await user.click(dates());
  await user.paste(all.join(","));
  await user.click(screen.getByRole("button", { name: "Save calendar" }));
  expect(await screen.findByText("A calendar has 1,000 dates at most, and these would be 1,004.")).toBeTruthy();
  expect(asked.every((one) => one.method === "GET")).toBe(true);
});

it("changes what was changed, keeps what others added meanwhile, and tells who was planned anew", async () => {
  const asked = stubServer({
    ...calendars(office),
    "GET /api/calendars/office": { ...office, dates: ["12-24", "2026-01-06", "2026-12-24", "2027-01-06", "2027-05-01"] },
    "PUT /api/calendars/office": { ...office, replanned: ["report", "sync"] },
  });
  open();
  await user.click(await screen.findByRole("button", { name: "Change calendar office" }));
  expect(screen.queryByLabelText("Name")).toBeNull();
  await user.click(screen.getByRole("button", { name: "Remove 1 past date" }));
  await user.click(screen.getByRole("button", { name: "Remove 12-24" }));
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Remove 2026-12-24");
  await user.type(dates(), "2027-12-24");
  await user.click(screen.getByRole("button", { name: "Save calendar" }));
  await screen.findByText("Calendar office is saved");
  expect(screen.getByText("Planned anew: report and sync.")).toBeTruthy();
  expect(asked.find((one) => one.method === "PUT")?.body).toEqual({
    dates: ["2026-12-24", "2027-01-06", "2027-05-01", "2027-12-24"],
    version: office.version,
  });
});

it("begins again with what others changed while it was being saved", async () => {
  const theirs = { ...office, dates: [...office.dates, "2027-05-01"], version: office.version + 1 };
  let reads = 0;
  const asked = stubServer({
    ...calendars(office),
    "GET /api/calendars/office": () => ((reads += 1) === 1 ? office : theirs),
    "PUT /api/calendars/office": ({ body }: { body: unknown }) =>
      (body as { version: number }).version === theirs.version ? theirs : problem(409, "it was changed"),
  });
  open();
  await user.click(await screen.findByRole("button", { name: "Change calendar office" }));
  await user.type(dates(), "2027-12-24");
  await user.click(screen.getByRole("button", { name: "Save calendar" }));
  await screen.findByText("Calendar office is saved");
  const [first, second, ...more] = asked.filter((one) => one.method === "PUT").map((one) => one.body);
  expect(first).toEqual({ dates: [...office.dates, "2027-12-24"], version: office.version });
  expect(second).toEqual({ dates: [...theirs.dates, "2027-12-24"], version: theirs.version });
  expect(more).toEqual([]);
});

it("does not take the place of one that somebody else has just made", async () => {
  const taken = [sampleCalendar({ name: "plant" })];
  let reads = 0;
  stubServer({
    "GET /api/calendars": () => ({ items: (reads += 1) === 1 ? [] : taken, zone: "UTC" }),
    "PUT /api/calendars/plant": problem(409, "a calendar 'plant' already exists", { version: 1 }),
  });
  open();
  await user.click(await screen.findByRole("button", { name: "New calendar" }));
  await user.type(screen.getByLabelText("Name"), "plant");
  await user.click(screen.getByRole("button", { name: "Make calendar" }));
  expect(await screen.findByText("There is a calendar plant already.")).toBeTruthy();
});

it("takes the note away when it is emptied, and no date", async () => {
  const asked = stubServer({ ...calendars(office), "GET /api/calendars/office": office, "PUT /api/calendars/office": office });
  open();
  await user.click(await screen.findByRole("button", { name: "Change calendar office" }));
  await user.clear(screen.getByLabelText("Note"));
  await user.keyboard("{Enter}");
  await screen.findByText("Calendar office is saved");
  expect(asked.find((one) => one.method === "PUT")?.body).toEqual({
    dates: office.dates,
    note: "",
    version: office.version,
  });
});

it("shows what the server does not take at its field", async () => {
  stubServer({
    ...calendars(),
    "PUT /api/calendars/a": problem(422, "wrong", { errors: [{ field: "name", message: "a calendar cannot be called a" }] }),
  });
  open();
  await user.click(await screen.findByRole("button", { name: "New calendar" }));
  await user.type(screen.getByLabelText("Name"), "a");
  await user.click(screen.getByRole("button", { name: "Make calendar" }));
  await screen.findByText("a calendar cannot be called a");
  expect(screen.getByLabelText("Name").getAttribute("aria-invalid")).toBe("true");
});

it("asks before what was typed is lost", async () => {
  stubServer(calendars(office));
  open();
  await user.click(await screen.findByRole("button", { name: "Change calendar office" }));
  await user.keyboard("{Escape}");
  expect(screen.queryByRole("dialog")).toBeNull();
  await user.click(screen.getByRole("button", { name: "Change calendar office" }));
  await user.type(dates(), "2027-01-01");
  await user.keyboard("{Escape}");
  await user.click(await screen.findByRole("button", { name: "Go back" }));
  expect(dates().value).toBe("2027-01-01");
  await user.keyboard("{Escape}");
  await user.click(await screen.findByRole("button", { name: "Leave" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});

it("removes one that nothing uses, and says of another by which schedules it is used", async () => {
  const asked = stubServer({ ...calendars(office, sampleCalendar({ name: "old", schedules: [] })), "DELETE /api/calendars/old": null });
  open();
  await user.click(await screen.findByRole("button", { name: "Remove calendar office" }));
  expect(dialog().getByText(/2 schedules use it: report and sync\./)).toBeTruthy();
  await user.click(dialog().getByRole("button", { name: "Remove calendar" }));
  await user.click(dialog().getByRole("button", { name: "Go back" }));
  expect(asked.some((one) => one.method === "DELETE")).toBe(false);
  await user.click(screen.getByRole("button", { name: "Remove calendar old" }));
  await user.click(dialog().getByRole("button", { name: "Remove calendar" }));
  await screen.findByText("Calendar old is removed");
});

it("says why the server refuses to remove one that is used since", async () => {
  stubServer({
    ...calendars(sampleCalendar({ schedules: [] })),
    "DELETE /api/calendars/office": problem(409, "schedules use calendar 'office': report"),
  });
  open();
  await user.click(await screen.findByRole("button", { name: "Remove calendar office" }));
  await user.click(dialog().getByRole("button", { name: "Remove calendar" }));
  await screen.findByText("schedules use calendar 'office': report");
});

it("lets a viewer look, and nothing else", async () => {
  const asked = stubServer({ ...calendars(office), "GET /api/me": { ...ME, role: "viewer" } });
  open();
  for (const name of ["New calendar", "Change calendar office", "Remove calendar office"]) {
    const button = await screen.findByRole("button", { name });
    await waitFor(() => expect(button.getAttribute("aria-disabled")).toBe("true"));
    await user.click(button);
    expect(screen.queryByRole("dialog")).toBeNull();
  }
  expect(asked.every((one) => one.method === "GET")).toBe(true);
});
