import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Lane } from "@/api/types";
import { LanesPage } from "@/pages/lanes/LanesPage";
import { renderPage } from "@/testing/render";
import { ME, problem, stubServer } from "@/testing/server";

const lane = (changes: Partial<Lane> = {}): Lane => ({
  name: "main",
  limit: 30,
  rate: null,
  used: 3,
  queued: 12,
  oldest_at: null,
  paused: false,
  paused_by: null,
  paused_at: null,
  note: null,
  ...changes,
});

const lanes = (...items: Lane[]) => ({ "GET /api/lanes": { items } });

it("a lane shows its gauge, and a full one says so in words", async () => {
  stubServer(lanes(lane(), lane({ name: "cron", used: 30 })));
  renderPage(LanesPage);
  const meters = await screen.findAllByRole("meter");
  expect(meters.map((meter) => meter.getAttribute("aria-valuetext"))).toEqual(["3 of 30", "30 of 30, full"]);
});

it("pausing asks for a note and sends it", async () => {
  const asked = stubServer({ ...lanes(lane()), "POST /api/lanes/main/pause": lane({ paused: true }) });
  renderPage(LanesPage);
  await userEvent.click(await screen.findByRole("button", { name: "Pause" }));
  await userEvent.type(screen.getByLabelText("Note"), "tonight");
  await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Pause lane" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(asked.find((one) => one.method === "POST")).toMatchObject({
    path: "/api/lanes/main/pause",
    body: { note: "tonight" },
  });
});

it("the limit is changed where it stands", async () => {
  const asked = stubServer({ ...lanes(lane()), "PUT /api/lanes/main": lane({ limit: 5 }) });
  renderPage(LanesPage);
  await userEvent.click(await screen.findByRole("button", { name: /Limit of lane main: 30/ }));
  await userEvent.keyboard("5{Enter}");
  await screen.findByText("The limit of lane main is now 5");
  expect(asked.find((one) => one.method === "PUT")?.body).toEqual({ limit: 5 });
  expect(document.activeElement?.getAttribute("aria-label")).toMatch(/^Limit of lane main/);
});

it("a limit that the server refuses goes back, with the reason", async () => {
  stubServer({ ...lanes(lane()), "PUT /api/lanes/main": problem(422, "limit cannot be 9999999") });
  renderPage(LanesPage);
  await userEvent.click(await screen.findByRole("button", { name: /Limit of lane main: 30/ }));
  await userEvent.keyboard("9999999{Enter}");
  await screen.findByText("limit cannot be 9999999");
  await screen.findByRole("button", { name: /Limit of lane main: 30/ });
});

it("clearing is confirmed first, and says how many went", async () => {
  const asked = stubServer({ ...lanes(lane()), "POST /api/lanes/main/clear": { cleared: 12 } });
  renderPage(LanesPage);
  await userEvent.click(await screen.findByRole("button", { name: "More actions for lane main" }));
  await userEvent.click(await screen.findByRole("menuitem", { name: "Clear queue…" }));
  expect(asked.some((one) => one.method === "POST")).toBe(false);
  await userEvent.click(await screen.findByRole("button", { name: "Clear queue" }));
  await screen.findByText("12 runs cancelled in lane main");
});

it("a viewer cannot pause, and is told who may", async () => {
  const asked = stubServer({ ...lanes(lane()), "GET /api/me": { ...ME, role: "viewer" } });
  renderPage(LanesPage);
  const button = await screen.findByRole("button", { name: "Pause" });
  await waitFor(() => expect(button.getAttribute("aria-disabled")).toBe("true"));
  await userEvent.click(button);
  expect(screen.queryByRole("dialog")).toBeNull();
  await userEvent.hover(button);
  expect((await screen.findByRole("tooltip")).textContent).toContain("Only an operator or an admin");
  expect(asked.every((one) => one.method === "GET")).toBe(true);
});

it("an error stands in place, with a retry that works", async () => {
  let broken = true;
  stubServer({ "GET /api/lanes": () => (broken ? problem(500, "the disk is full") : { items: [lane()] }) });
  renderPage(LanesPage);
  await screen.findByText("the disk is full");
  broken = false;
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  await screen.findByRole("meter");
});

it("what was typed and left is not there the next time, and the rate is that of now", async () => {
  let rate: string | null = null;
  stubServer({
    "GET /api/lanes": () => ({ items: [lane({ rate })] }),
    "PUT /api/lanes/main": problem(422, "no rate", { errors: [{ field: "rate", message: "abc is no rate" }] }),
  });
  const { cache } = renderPage(LanesPage);
  const setRate = async () => {
    await userEvent.click(await screen.findByRole("button", { name: "More actions for lane main" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "Set rate…" }));
    return screen.findByLabelText<HTMLInputElement>("Rate");
  };
  await userEvent.type(await setRate(), "abc{Enter}");
  await screen.findByText("abc is no rate");
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  rate = "5/m";
  await cache.invalidateQueries();
  await screen.findByText("5/m");
  const field = await setRate();
  expect([field.value, field.getAttribute("aria-invalid")]).toEqual(["5/m", null]);
  await userEvent.keyboard("{Escape}");

  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  await userEvent.type(screen.getByLabelText("Note"), "tonight");
  await userEvent.keyboard("{Escape}");
  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  expect(screen.getByLabelText<HTMLInputElement>("Note").value).toBe("");
});

it("makes a lane by its name and limit, unless there is one of that name", async () => {
  const asked = stubServer({ ...lanes(lane()), "PUT /api/lanes/reports": lane({ name: "reports", limit: 5 }) });
  renderPage(LanesPage);
  await userEvent.click(await screen.findByText("New lane"));
  const name = await screen.findByLabelText("Name");
  const make = screen.getByRole("button", { name: "Make lane" });
  await userEvent.type(name, "main");
  await userEvent.click(make);
  expect(screen.getByText("There is a lane main already.")).toBeTruthy();
  await userEvent.clear(name);
  await userEvent.type(name, "reports");
  await userEvent.click(make);
  expect(await screen.findByText("Lane reports is made")).toBeTruthy();
  expect(asked.find((each) => each.method === "PUT")).toMatchObject({ path: "/api/lanes/reports", body: { limit: 5 } });
});

it("leaves a lane as it is that somebody else made meanwhile", async () => {
  let items = [lane()];
  const asked = stubServer({ "GET /api/lanes": () => ({ items }) });
  renderPage(LanesPage);
  await userEvent.click(await screen.findByText("New lane"));
  await userEvent.type(await screen.findByLabelText("Name"), "reports");
  items = [lane(), lane({ name: "reports", limit: 2 })];
  await userEvent.click(screen.getByRole("button", { name: "Make lane" }));
  expect(await screen.findByText("There is a lane reports already.")).toBeTruthy();
  expect(asked.filter((each) => each.method === "PUT")).toEqual([]);
});
