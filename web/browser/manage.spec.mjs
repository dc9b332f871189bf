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

  // What failed last is the first by one choice, on a wide screen too.
  await cli("schedule", "add", "zeta", "daily 03:00", "--shell", "exit 1", "--retry", "0");
  await cli("schedule", "trigger", "zeta");
  await eventually("it has failed", async () => (await schedule("zeta")).last_run?.state === "failed");
  await page.getByLabel("Order").selectOption({ label: "Last failure" });
  await eventually("it is the first", async () => (await page.getByRole("switch").first().getAttribute("aria-label"))?.includes("zeta"));
  await page.getByLabel("State", { exact: true }).selectOption({ label: "last failed" });
  await page.getByText("1 schedule found").waitFor();
  await cli("schedule", "rm", "zeta", "--yes");
  await page.goto("/schedules");
  await page.getByText("3 schedules").waitFor();

  // A search is in the address, so that it can be shared; the two that it finds are paused together.
  await page.getByLabel("Search schedules").fill("backup");
  await page.getByText("2 schedules found").waitFor();
  await page.reload();
  await page.getByText("2 schedules found").waitFor();
  await page.getByRole("checkbox", { name: "Select backup-mail" }).check();
  await page.getByRole("checkbox", { name: "Select backup-files" }).check();
  const selected = page.getByRole("region", { name: "Selected schedules" });
  await selected.getByText("2 selected").waitFor();
  await selected.getByRole("button", { name: "Run now" }).click();
  await dialog.getByText("Run 2 schedules now?").waitFor(); // a slip of the hand starts nothing
  await dialog.getByRole("button", { name: "Go back" }).click();
  await selected.getByRole("button", { name: "Pause" }).click();
  await dialog.getByLabel(/Reason/).fill("the disk moves");
  await dialog.getByRole("button", { name: "Pause" }).click();
  await page.getByText("off: the disk moves").first().waitFor();
  expect(!(await schedule("backup-mail")).enabled && !(await schedule("backup-files")).enabled, "both are off");
  expect((await schedule("report")).enabled, "the third is on");

  // One of them is enabled again.
  await page.getByRole("switch", { name: /backup-mail/ }).click();
  await eventually("it is on", async () => (await schedule("backup-mail")).enabled);

  // The last three days of it are made up for.
  await page.getByRole("link", { name: "backup-mail" }).click();
  await page.getByRole("heading", { level: 1, name: "backup-mail" }).waitFor();
  await page.getByRole("button", { name: "Backfill…" }).click();
  const from = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 16);
  await dialog.getByLabel(/From/).fill(from);
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("3 due times will be run").waitFor();
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
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight)); // far from the first field
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const conflict = page.getByText("Somebody else changed this schedule while you edited it");
  await conflict.waitFor();
  await isInSight(page, conflict, "what somebody else changed");
  expect((await schedule("backup-mail")).timing === "daily 03:00", "nothing was overwritten unseen");
  await page.getByRole("button", { name: "Save mine" }).click();
  await eventually("both changes are there", async () => {
    const { timing, policy } = await schedule("backup-mail");
    return timing === "daily 04:30" && String(policy.timeout).startsWith("7m");
  });

  // The login ends while a form is open: it stays as it is, and is saved when there is a login again.
  await page.goto("/schedules/backup-mail/edit");
  await page.getByLabel("Timing", { exact: true }).fill("daily 05:15");
  const cookies = await context.cookies();
  const loginEnded = dialog.getByText(/Your login has ended/);
  const stay = async () => {
    await loginEnded.waitFor();
    await dialog.getByRole("button", { name: "Go back" }).click();
    await loginEnded.waitFor({ state: "hidden" });
  };
  await context.clearCookies();
  await cli("schedule", "trigger", "report"); // the list that is loaded anew behind the form finds it out, and asks
  await stay();
  await page.getByRole("button", { name: "Save", exact: true }).click(); // whoever saves is asked again
  await stay();
  expect((await page.getByLabel("Timing", { exact: true }).inputValue()) === "daily 05:15", "what was typed is there");
  await context.addCookies(cookies);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.waitForURL("**/schedules/backup-mail");
  expect((await schedule("backup-mail")).timing === "daily 05:15", "it is saved");

  // On the narrowest phone, with a bar of its own at the bottom, the page does not scroll sideways and the button of the
  // form is above the navigation.
  await page.setViewportSize({ width: 320, height: 640 });
  await page.goto("/schedules/backup-mail");
  await page.getByRole("group", { name: /^Runs by day/ }).waitFor();
  await eventually("the schedule is no wider than 320 pixels", () =>
    page.evaluate(() => document.documentElement.scrollWidth <= 320),
  );
  const phone = await context.newCDPSession(page);
  await phone.send("Emulation.setSafeAreaInsetsOverride", { insets: { bottom: 34 } });
  await page.goto("/schedules/backup-mail/edit");
  await eventually("the navigation leaves room for the phone's own bar, and the button ends above it", async () => {
    const save = await page.getByRole("button", { name: "Save", exact: true }).boundingBox();
    const bar = await page.getByRole("navigation", { name: "Pages" }).last().boundingBox();
    return bar.height > 80 && save.y + save.height <= bar.y;
  });
  await phone.send("Emulation.setSafeAreaInsetsOverride", { insets: {} });
  await page.setViewportSize({ width: 1280, height: 900 });

  // It goes, with everything of it, after a question.
  await page.goto("/schedules/report");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Remove" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("heading", { level: 1, name: "Schedules" }).waitFor();
  await page.getByText("2 schedules").waitFor();
  expect((await context.pages()).length === 1, "no window was opened");
});

/** Somebody who looks at the screen sees it, without scrolling. */
async function isInSight(page, locator, what) {
  const { height } = page.viewportSize();
  await eventually(`${what} is in sight`, async () => {
    const box = await locator.boundingBox();
    return box !== null && box.y >= 0 && box.y + box.height <= height;
  });
}
