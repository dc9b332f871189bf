// Filters in the address, many schedules at once, a pause with its reason, a backfill, and an edit that collides.
import { eventually, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, context, logIn, cli }) => {
  const dialog = page.getByRole("dialog");
  const schedule = async (name) => JSON.parse(await cli("schedule", "show", name, "--json"));
  for (const name of ["backup-mail", "backup-files", "report"]) {
    await cli("schedule", "add", name, "daily 03:00", "--shell", "echo done");
  }
  await logIn();
  await page.goto("/schedules");
  await page.getByText("3 schedules").waitFor();

  // A search is in the address, so that it can be shared; the two that it finds are switched off together.
  await page.getByLabel("Search schedules").fill("backup");
  await page.getByText("2 schedules found").waitFor();
  await page.reload();
  await page.getByText("2 schedules found").waitFor();
  await page.getByRole("checkbox", { name: "Select backup-mail" }).check();
  await page.getByRole("checkbox", { name: "Select backup-files" }).check();
  const bar = page.getByRole("region", { name: "Selected schedules" });
  await bar.getByText("2 selected").waitFor();
  await bar.getByRole("button", { name: "Disable" }).click();
  await dialog.getByLabel(/Reason/).fill("the disk moves");
  await dialog.getByRole("button", { name: "Disable" }).click();
  await page.getByText("off: the disk moves").first().waitFor();
  expect(!(await schedule("backup-mail")).enabled && !(await schedule("backup-files")).enabled, "both are off");
  expect((await schedule("report")).enabled, "the third is on");

  // One of them is switched on again.
  await page.getByRole("switch", { name: /backup-mail/ }).click();
  await eventually("it is on", async () => (await schedule("backup-mail")).enabled);

  // The last three days of it are made up for.
  await page.getByRole("link", { name: "backup-mail" }).click();
  await page.getByRole("heading", { level: 1, name: "backup-mail" }).waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Backfill" }).click();
  const from = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 16);
  await dialog.getByLabel(/From/).fill(from);
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("3 due times would be run").waitFor();
  await dialog.getByRole("button", { name: "Run 3 due times" }).click();
  await eventually("three runs have succeeded", async () => {
    const runs = JSON.parse(await cli("schedule", "runs", "backup-mail", "--json"));
    return runs.filter((run) => run.state === "succeeded").length === 3;
  });

  // Somebody else changes it while its form is open: nothing is lost, and nothing is overwritten unseen.
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByRole("heading", { level: 1, name: "Edit backup-mail" }).waitFor();
  await cli("schedule", "edit", "backup-mail", "--timeout", "7m");
  await page.getByLabel("Timing", { exact: true }).fill("daily 04:30");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Somebody else changed this schedule while you edited it").waitFor();
  expect((await schedule("backup-mail")).timing === "daily 03:00", "nothing was overwritten unseen");
  await page.getByRole("button", { name: "Save over it" }).click();
  await eventually("both changes are there", async () => {
    const { timing, policy } = await schedule("backup-mail");
    return timing === "daily 04:30" && String(policy.timeout).startsWith("7m");
  });

  // It goes, with everything of it, after a question.
  await page.goto("/schedules/report");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Remove" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("heading", { level: 1, name: "Schedules" }).waitFor();
  await page.getByText("2 schedules").waitFor();
  expect((await context.pages()).length === 1, "no window was opened");
});
