// A calendar from its making to its end: dates are pasted, a schedule leaves them out and is planned anew when they
// change, what is wrong is said before it is sent, and one that is in use stays.
import { axeFindsNothing } from "./axe.mjs";
import { eventually, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, context, logIn, cli }) => {
  const dialog = page.getByRole("dialog");
  const calendar = async (name) => JSON.parse(await cli("calendar", "show", name, "--json"));
  const schedule = async (name) => JSON.parse(await cli("schedule", "show", name, "--json"));
  const onDay = (days) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  await logIn();

  // The keys lead there; what is wrong is told at its field, and Enter in a field saves.
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.getByRole("heading", { level: 1, name: "Calendars" }).waitFor();
  await page.getByText("There are no calendars yet").waitFor();
  await axeFindsNothing(page, "the empty list");
  await page.getByRole("button", { name: "New calendar" }).click();
  const dates = dialog.getByLabel("Add dates");
  await dates.fill(`24.12.2030, 12-31\n${onDay(400)}`);
  await dialog.getByText("There is no date “24.12.2030”.").waitFor();
  await dialog.getByText(/Did you mean 2030-12-24\?/).waitFor();
  await axeFindsNothing(page, "a date that is none", '[role="dialog"]');
  await dates.fill(`2030-12-24, 12-31\n${onDay(400)}`);
  await dialog.getByRole("button", { name: "Add to the list" }).click();
  await dialog.getByText("3 dates").waitFor();
  await axeFindsNothing(page, "dates to be made", '[role="dialog"]');
  await dialog.getByLabel("Name").fill("office");
  await page.keyboard.press("Enter");
  await page.getByText("Calendar office is made", { exact: true }).waitFor();
  expect((await calendar("office")).dates.join() === `12-31,${onDay(400)},2030-12-24`, "its dates are those");

  // A schedule leaves its days out, and says so on its own page.
  await page.goto("/schedules/new");
  await page.getByLabel("Name").fill("report");
  await page.getByLabel("Timing", { exact: true }).fill("daily 03:00");
  await page.getByRole("group", { name: "Leave out the days of" }).getByRole("button", { name: "office" }).click();
  await page.getByText(/except on the days of calendar 'office'/).waitFor();
  await page.getByLabel("Command").fill("true");
  await axeFindsNothing(page, "the form with a calendar");
  await page.getByRole("button", { name: "Create schedule" }).click();
  await page.getByRole("heading", { level: 1, name: "report" }).waitFor();
  await page.getByRole("link", { name: "office", exact: true }).click();
  const card = page.getByRole("region", { name: "office" });
  await card.getByRole("listitem").filter({ hasText: "2030-12-24" }).waitFor();
  await card.getByRole("link", { name: "report" }).waitFor();

  // Somebody adds a date while the dialog is open: both changes are there, and the schedule is planned anew.
  const due = new Date((await schedule("report")).next_run_at).toISOString().slice(0, 10);
  await card.getByRole("button", { name: "Change calendar office" }).click();
  await dates.fill(due);
  await dialog.getByRole("button", { name: "Remove 2030-12-24" }).press("Enter");
  await dialog.getByText("2 dates", { exact: true }).waitFor();
  await cli("calendar", "add", "office", "2031-01-01");
  await dialog.getByLabel("Note").fill("closed");
  await page.keyboard.press("Enter");
  await page.getByText("Calendar office is saved", { exact: true }).waitFor();
  await page.getByText("Planned anew: report.", { exact: true }).waitFor();
  const saved = await calendar("office");
  expect(saved.dates.join() === ["12-31", ...[due, onDay(400), "2031-01-01"].sort()].join(), `both changes: ${saved.dates}`);
  expect(saved.note === "closed", "with its note");
  expect(new Date((await schedule("report")).next_run_at).toISOString().slice(0, 10) !== due, "it is due another day");

  // What others do is seen without a reload.
  await cli("calendar", "set", "plant", "12-25");
  await page.getByRole("region", { name: "plant" }).waitFor();

  // One that is used stays, and says by whom; another goes.
  await page.getByRole("button", { name: "Remove calendar office" }).click();
  await dialog.getByText(/1 schedule uses it: report\./).waitFor();
  await axeFindsNothing(page, "a removal that is refused", '[role="dialog"]');
  await dialog.getByRole("button", { name: "Remove calendar" }).click({ force: true });
  await dialog.getByRole("button", { name: "Go back" }).click();
  await dialog.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Remove calendar plant" }).click();
  await dialog.getByRole("button", { name: "Remove calendar" }).click();
  await page.getByText("Calendar plant is removed", { exact: true }).waitFor();
  expect(JSON.parse(await cli("calendar", "ls", "--json")).map((one) => one.name).join() === "office", "one is left");

  // A viewer sees all of it, and changes nothing.
  const token = /ost_\S+/.exec(await cli("token", "add", "kiosk", "--role", "viewer"))[0];
  await context.clearCookies();
  await page.goto("/login");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.goto("/calendars");
  for (const name of ["New calendar", "Change calendar office", "Remove calendar office"]) {
    const button = page.getByRole("button", { name });
    await eventually(`${name} cannot be used`, async () => (await button.getAttribute("aria-disabled")) === "true");
  }
});
