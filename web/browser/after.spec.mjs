// A schedule that runs after another one: its page shows both as a graph, and one leads to the other.
import { expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli }) => {
  await logIn();
  await cli("schedule", "add", "import", "every 1h", "--shell", "echo 3 rows");
  await cli("schedule", "add", "report", "after import", "--shell", "echo reported");
  await page.goto("/schedules/report");
  await page.getByRole("heading", { level: 1, name: "report" }).waitFor();
  await page.getByText("After each run of 'import' that succeeded.").first().waitFor();
  const before = page.getByRole("list", { name: "Runs after" });
  await before.getByRole("link", { name: "import" }).click();

  await page.getByRole("heading", { level: 1, name: "import" }).waitFor();
  const after = page.getByRole("list", { name: "Followed by" });
  await after.getByRole("link", { name: "report" }).waitFor();
  await cli("schedule", "trigger", "import");
  await after.getByText("succeeded").waitFor(); // without a reload: the run that followed
  const runs = JSON.parse(await cli("run", "ls", "--schedule", "report", "--json"));
  expect(runs.length === 1 && runs[0].trigger === "after", "one run came after the other");
});
