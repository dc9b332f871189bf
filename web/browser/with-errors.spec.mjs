// A schedule that does its work and counts errors: the page says so wherever its runs are shown, without a colour, too.
import { expect, scenario } from "./scenario.mjs";

const REPORT = `printf '{"count": {"copied": 120, "errors": 3}}' > $OSTINATO_REPORT`;

await scenario(async ({ page, logIn, cli }) => {
  await logIn();
  await cli("schedule", "add", "copy", "every 1h", "--shell", REPORT);
  await cli("schedule", "trigger", "copy", "--wait");
  const [run] = JSON.parse(await cli("run", "ls", "--cause", "errors", "--json"));
  expect(run.state === "succeeded" && run.reason === "3 errors", "the ledger has it as succeeded, with errors");

  await page.getByText("+ 1 with errors").waitFor(); // on the overview, without a reload
  await page.getByText("1 succeeded with errors").waitFor(); // below its chart

  await page.goto("/schedules");
  await page.getByLabel("Last run: 1 succeeded with errors.").waitFor();
  await page.getByTitle("It succeeded with 3 errors.").waitFor();

  await page.getByRole("link", { name: "copy", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "copy" }).waitFor();
  await page.getByLabel(/: 1 run, 1 succeeded with errors$/).waitFor(); // a day of its map
  await page.getByRole("link", { name: /succeeded with errors .*copied 120.*errors 3/ }).click();

  await page.getByRole("heading", { level: 1, name: /^Run \d+ succeeded with errors$/ }).waitFor();
  await page.getByText("Succeeded with 3 errors").waitFor();

  await page.goto("/runs?cause=errors");
  const row = page.getByRole("link", { name: /succeeded with errors/ });
  await row.getByText("copied 120, errors 3").waitFor();
  await page.goto("/timeline?span=1h");
  await page.getByLabel(/^copy: succeeded with errors, /).waitFor();
});
