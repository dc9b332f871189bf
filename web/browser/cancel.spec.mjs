// A run that takes too long is cancelled from its page, with a reason; until it has stopped the page says that it is
// told to. It can be tried again.
import { expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli, touch }) => {
  const command = "trap 'until [ -e enough ]; do sleep 0.05; done; exit 1' TERM; echo begun; while :; do sleep 0.05; done";
  await cli("schedule", "add", "endless", "every 1h", "--shell", command);
  await logIn();
  await cli("schedule", "trigger", "endless");
  await page.getByText("endless").first().waitFor(); // on the overview, without a reload
  await page.getByRole("progressbar", { name: /Progress of run/ }).waitFor();
  await page.goto("/runs/1");
  await page.getByRole("log", { name: "Output lines" }).getByText("begun").waitFor();

  await page.getByRole("button", { name: "Cancel" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Reason/).fill("it never ends");
  await dialog.getByRole("button", { name: "Cancel run" }).click();
  await page.getByRole("heading", { level: 1, name: /cancelling…/ }).waitFor();
  const told = page.getByRole("button", { name: "Cancelling…" });
  expect((await told.getAttribute("aria-disabled")) === "true", "it cannot be told twice");
  await page.goto("/");
  await page.getByText("cancelling…", { exact: true }).waitFor(); // also to whoever looks only now
  await page.goto("/runs/1");
  await touch("enough");
  await page.getByRole("heading", { level: 1, name: /cancelled/ }).waitFor();
  await page.getByText("it never ends").first().waitFor();
  const [run] = JSON.parse(await cli("run", "ls", "--json"));
  expect(run.state === "cancelled" && run.reason.includes("it never ends"), "the ledger says why");

  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("heading", { level: 1, name: /^Run 2/ }).waitFor();
  await page.getByRole("heading", { level: 1, name: /running/ }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await dialog.getByRole("button", { name: "Cancel run" }).click();
  await page.getByRole("heading", { level: 1, name: /cancelled/ }).waitFor();
});
