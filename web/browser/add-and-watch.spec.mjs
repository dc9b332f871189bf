// A schedule is added by typing `every 5m`; the preview says what that means; its run is watched from start to end.
import { eventually, expect, scenario } from "./scenario.mjs";

const COMMAND = [
  "printf 'reading the \\033[32mlist\\033[0m <b>now</b>\\n'",
  'echo \'{"progress": {"done": 1, "total": 4, "text": "first quarter"}}\' > "$OSTINATO_REPORT"',
  "until [ -e half ]; do sleep 0.05; done",
  "echo half of it",
  'echo \'{"progress": {"done": 2, "total": 4, "text": "half"}, "totals": {"copied": 7}}\' > "$OSTINATO_REPORT"',
  "until [ -e go ]; do sleep 0.05; done",
  "echo all of it",
].join("\n");

await scenario(async ({ page, logIn, cli, touch }) => {
  await logIn();
  await page.getByText("Nothing is scheduled yet").waitFor();
  await page.getByRole("link", { name: "New schedule" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill("copy");

  const timing = page.getByLabel("Timing", { exact: true });
  await timing.pressSequentially("evry 5m");
  await page.getByRole("alert").waitFor(); // a wrong one is told while it is typed
  await timing.fill("");
  await timing.pressSequentially("every 5m");
  await page.getByText(/every 5 minutes/i).first().waitFor();
  const preview = page.locator("[aria-live=polite]").filter({ hasText: /every 5 minutes/i }).locator("..");
  const times = await preview.locator("time").evaluateAll((all) => all.map((one) => Date.parse(one.dateTime)));
  expect(times.length === 5, `five due times are shown, not ${times.length}`);
  expect(times.every((time, at) => at === 0 || time - times[at - 1] === 300_000), "they are five minutes apart");

  await page.getByLabel("Command", { exact: true }).fill(COMMAND);
  await page.getByRole("button", { name: "Create schedule" }).click();
  await page.getByRole("heading", { level: 1, name: "copy" }).waitFor();
  await page.getByText(/in 4 m \d\d s|in 5 m 00 s/).first().waitFor();

  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("button", { name: "Show run" }).click();
  await page.getByRole("heading", { level: 1, name: /^Run \d+/ }).waitFor();
  const output = page.getByRole("log", { name: "Output lines" });
  await output.getByText("reading the list <b>now</b>").waitFor(); // colours are drawn, HTML is text
  const bar = page.getByRole("progressbar");
  await eventually("a quarter is done", async () => (await bar.getAttribute("aria-valuenow")) === "25");

  await touch("half");
  await output.getByText("half of it").waitFor();
  await eventually("half is done", async () => (await bar.getAttribute("aria-valuenow")) === "50");
  expect((await output.getByText("all of it").count()) === 0, "the rest is not there yet");

  await touch("go");
  await output.getByText("all of it").waitFor();
  await page.getByRole("heading", { level: 1, name: /succeeded/ }).waitFor();
  await page.getByText("copied", { exact: true }).waitFor();

  const [run] = JSON.parse(await cli("run", "ls", "--json"));
  expect(run.state === "succeeded" && run.trigger === "manual", "the ledger has it");
  await page.getByRole("link", { name: "copy" }).first().click();
  await page.getByRole("button", { name: /^Runs/ }).or(page.getByRole("link", { name: /^Runs/ })).first().click();
  const log = page.getByRole("dialog");
  await log.getByRole("link", { name: /^succeeded.*manual.*copied/ }).waitFor();
});
