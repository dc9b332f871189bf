// Whoever may only look sees everything, and every control that would change something says why it cannot.
import { expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, cli }) => {
  await cli("schedule", "add", "backup", "daily 03:00", "--shell", "echo hello");
  const token = /ost_\S+/.exec(await cli("token", "add", "kiosk", "--role", "viewer"))[0];
  await page.goto("/login");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();

  await page.goto("/schedules/backup");
  await page.getByRole("heading", { level: 1, name: "backup" }).waitFor();
  const run = page.getByRole("button", { name: "Run now" });
  await refuses(run);
  await page.goto("/schedules");
  await refuses(page.getByRole("switch").first());
  await refuses(page.getByRole("button", { name: "New schedule" }));
  const runs = JSON.parse(await cli("run", "ls", "--json"));
  expect(runs.length === 0, "nothing was started");
  const [schedule] = JSON.parse(await cli("schedule", "ls", "--json"));
  expect(schedule.enabled, "nothing was switched");

  // Also past the page: the server itself refuses.
  const status = await page.evaluate(async () => {
    const key = localStorage.getItem("ostinato.origin_key");
    const answer = await fetch("/api/schedules/backup/trigger", {
      method: "POST",
      headers: { "X-Origin-Key": key, "Content-Type": "application/json" },
      body: "{}",
    });
    return answer.status;
  });
  expect(status === 403, `the server answers 403, not ${status}`);
});

async function refuses(control) {
  await control.waitFor();
  const off = (await control.isDisabled()) || (await control.getAttribute("aria-disabled")) === "true";
  expect(off, `${await control.textContent()} cannot be used`);
  await control.click({ force: true });
}
