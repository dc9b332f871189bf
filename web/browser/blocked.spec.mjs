// A lane that somebody paused holds up a schedule: its page and the run's say so by themselves, who did it and why, and
// have the button that ends it. A run that takes too long is cancelled from the page of the schedule that it holds up.
import { expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli }) => {
  // In the browser's zone: the server's clock is another.
  const strip = page.getByText(/^Lane 'cron' is paused by .+ since [^+]+ \(disk swap\)$/);
  await logIn();
  await cli("schedule", "add", "tick", "every 1s", "--shell", "echo done");
  await page.goto("/schedules/tick");
  await page.getByRole("heading", { level: 1, name: /tick/ }).waitFor();
  await cli("lane", "pause", "cron", "--note", "disk swap");
  await strip.waitFor(); // without a reload
  const way = page.getByRole("link", { name: /^run \d+$/ });
  await way.first().waitFor();
  await page.getByText("ostinato lane resume cron").waitFor();

  await way.first().click();
  await page.getByRole("heading", { level: 1, name: /queued/ }).waitFor();
  await strip.waitFor();
  await page.getByRole("button", { name: "Resume lane cron" }).click();
  await page.getByText("Resume lane cron: done", { exact: true }).waitFor();
  await page.getByRole("heading", { level: 1, name: /succeeded/ }).waitFor();
  await strip.waitFor({ state: "detached" });
  const lanes = JSON.parse(await cli("lane", "ls", "--json"));
  expect(!lanes.find((lane) => lane.name === "cron").paused, "the lane is resumed");

  // Its own work is in the way: the next due times are skipped for it.
  await cli("schedule", "edit", "tick", "--shell", "sleep 600");
  await page.goto("/schedules/tick");
  await page.getByText(/^Run \d+ of 'tick' is running since .+, and its overlap policy is skip$/).waitFor();
  await cli("schedule", "disable", "tick", "--note", "enough");
  await page.getByText(/^Schedule 'tick' is switched off by .+ \(enough\)$/).waitFor();
  await page.getByRole("button", { name: "Enable", exact: true }).click();
  await page.getByText("tick is on", { exact: true }).waitFor();
  await page.getByText(/is switched off by/).waitFor({ state: "detached" });
});
