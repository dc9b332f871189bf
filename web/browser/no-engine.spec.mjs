// `ostinato web` alone: the page says that nothing runs and what to type; one run by hand is seen all the same.
import { scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli }) => {
  await cli("schedule", "add", "backup", "daily 03:00", "--shell", "echo done");
  await logIn();
  await page.getByText("No engine is running").waitFor();
  await page.getByText(/ostinato worker/).first().waitFor();

  // What another process executes comes through the database, live.
  await page.goto("/schedules");
  await page.getByText("has not run").waitFor();
  await page.goto("/");
  await page.getByText("Nothing is running.").waitFor();
  const finished = cli("exec", "--shell", "echo begun; sleep 2");
  await page.getByRole("progressbar", { name: /Progress of run/ }).waitFor();
  await finished;
  await page.getByText("Nothing is running.").waitFor();
});
