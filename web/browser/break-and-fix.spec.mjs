// A schedule fails three times and is broken, in front of the eyes of whoever has its page open; fixed, it runs again.
import { expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli }) => {
  await logIn();
  await cli("schedule", "add", "fragile", "every 1s", "--retry", "0", "--shell", "echo the disk is full >&2; exit 3");
  await page.goto("/schedules/fragile");
  await page.getByRole("heading", { level: 1, name: "fragile" }).waitFor();
  await page.getByText(/^Schedule .fragile. is broken: /).waitFor(); // without a reload
  const [broken] = JSON.parse(await cli("schedule", "ls", "--json"));
  expect(broken.broken !== null && !broken.enabled, "the ledger has it as broken and off");
  const failed = JSON.parse(await cli("run", "ls", "--state", "failed", "--json"));
  expect(failed.length === 3, `three runs have failed, not ${failed.length}`);

  await page.getByRole("link", { name: "Overview" }).first().click();
  await page.getByRole("heading", { name: /Broken/ }).waitFor();
  await page.getByRole("link", { name: "fragile" }).first().click();

  await page.getByRole("link", { name: "Fix and re-enable" }).click();
  await page.getByText("saving switches the schedule on again").waitFor();
  const command = page.getByLabel("Command", { exact: true });
  expect((await command.inputValue()).includes("disk is full"), "the form shows what it does now");
  await command.fill("echo there is room again");
  await page.getByRole("button", { name: "Save and re-enable" }).click();
  await page.getByRole("heading", { level: 1, name: "fragile" }).waitFor();
  await page.getByText(/^Schedule .fragile. is broken: /).waitFor({ state: "hidden" });
  await page.getByText("succeeded", { exact: true }).first().waitFor(); // it runs again
  const [fixed] = JSON.parse(await cli("schedule", "ls", "--json"));
  expect(fixed.broken === null && fixed.enabled, "the ledger has it as on");
});
