// The server goes away and comes back: what was seen stays, says since when it is stale, and is fresh again by itself.
import { expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli, stopServer, startServer, forgive }) => {
  await cli("schedule", "add", "backup", "daily 03:00", "--shell", "true");
  await logIn();
  await page.goto("/schedules");
  await page.getByRole("link", { name: "backup" }).waitFor();

  forgive(/WebSocket connection to .* failed|ERR_CONNECTION_REFUSED/);
  await stopServer();
  const stale = page.getByText(/Stale since \d\d:\d\d:\d\d/);
  await stale.waitFor();
  expect(await page.getByRole("link", { name: "backup" }).isVisible(), "what was seen stays");

  await cli("schedule", "add", "cleanup", "daily 04:00", "--shell", "true");
  await startServer();
  await stale.waitFor({ state: "hidden", timeout: 30_000 });
  await page.getByRole("link", { name: "cleanup" }).waitFor(); // what changed meanwhile is there, without a reload
});
