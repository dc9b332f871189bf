// The server goes away and comes back: what was seen stays, also when somebody points at a page that is not loaded yet,
// says since when it is stale, and is fresh again by itself. A page that was asked for meanwhile comes with the server.
import { expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli, stopServer, startServer, forgive }) => {
  await cli("schedule", "add", "backup", "daily 03:00", "--shell", "true");
  await logIn();
  await page.goto("/schedules");
  await page.getByRole("link", { name: "backup" }).waitFor();

  forgive(/WebSocket connection to .* failed|ERR_CONNECTION_REFUSED|could not be loaded/);
  await stopServer();
  const stale = page.getByText(/Stale since \d\d:\d\d:\d\d/);
  await stale.waitFor();
  const unloaded = page.waitForEvent("requestfailed", (request) => request.url().endsWith(".js"));
  await page.getByRole("link", { name: "Timeline" }).first().hover();
  await unloaded;
  expect(await page.getByRole("link", { name: "backup" }).isVisible(), "what was seen stays");
  expect(page.url().endsWith("/schedules"), "and the page with it");

  await cli("schedule", "add", "cleanup", "daily 04:00", "--shell", "true");
  await startServer();
  await stale.waitFor({ state: "hidden", timeout: 90_000 });
  await page.getByRole("link", { name: "cleanup" }).waitFor(); // what changed meanwhile is there, without a reload

  await stopServer();
  await stale.waitFor();
  await page.getByRole("link", { name: "Lanes" }).first().click();
  await page.getByText("This part of the page could not be loaded.").waitFor();
  expect(await page.getByRole("link", { name: "Schedules" }).first().isVisible(), "the frame stays");
  await page.getByRole("link", { name: "Schedules" }).first().click();
  await page.getByRole("link", { name: "cleanup" }).waitFor(); // what was loaded is still there
  await page.getByRole("link", { name: "Lanes" }).first().click();
  await page.getByText("This part of the page could not be loaded.").waitFor();
  await startServer();
  await page.getByRole("heading", { level: 1, name: "Lanes" }).waitFor({ timeout: 90_000 });
});
