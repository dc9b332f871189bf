// A channel and a rule, a schedule that fails, the bell, what was told to whom, an acknowledgement, and running it again.
import { eventually, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli }) => {
  const dialog = page.getByRole("dialog");
  await cli("schedule", "add", "nightly", "daily 03:00", "--shell", "exit 7", "--retry", "0");
  await logIn();

  // A channel is added, and its URL is not seen again.
  await page.goto("/settings?tab=channels");
  await page.getByText("No channels yet").waitFor();
  await page.getByRole("button", { name: "New channel" }).click();
  await dialog.getByLabel("Name").fill("phone");
  await dialog.getByLabel("URL").fill("json://127.0.0.1:9/secret");
  await dialog.getByLabel("Quiet hours").fill("at night");
  await dialog.getByRole("button", { name: "Add channel" }).click();
  await dialog.getByText(/22:00-07:00/).first().waitFor(); // what is wrong, and how it is right
  await dialog.getByLabel("Quiet hours").fill("");
  await dialog.getByRole("button", { name: "Add channel" }).click();
  await page.getByRole("list", { name: "Channels" }).getByText("phone").waitFor();
  expect(!(await page.content()).includes("secret"), "the URL is not on the page");
  await page.getByRole("button", { name: "New rule" }).click();
  await dialog.getByRole("button", { name: "Add rule" }).click();
  await page.getByRole("list", { name: "Rules" }).getByText("everything").waitFor();

  // The schedule names it, with a click.
  await page.goto("/schedules/nightly/edit");
  await page.getByText("Who is told").click();
  await page.getByRole("group", { name: "Channels" }).getByRole("button", { name: "phone" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await eventually("the schedule names the channel", async () => {
    const { policy } = JSON.parse(await cli("schedule", "show", "nightly", "--json"));
    return policy.notify.join() === "phone";
  });

  // It fails: the bell rings, without a reload.
  await page.goto("/");
  await page.getByRole("link", { name: "No open incidents" }).waitFor();
  await cli("schedule", "trigger", "nightly");
  await page.getByRole("link", { name: "1 open incident" }).click();
  await page.getByRole("heading", { level: 1, name: "Incidents" }).waitFor();
  const row = page.getByRole("button", { name: /nightly/ });
  await row.click();
  await page.getByRole("list", { name: "Told" }).getByText("phone").waitFor();
  await page.getByRole("button", { name: "Acknowledge" }).click();
  await dialog.getByLabel("Note").fill("the disk is full");
  await dialog.getByRole("button", { name: "Acknowledge" }).click();
  await page.getByText("the disk is full").waitFor();
  await row.getByText("acknowledged").waitFor();

  // It is mended, and what failed is run again: the incident closes.
  await page.getByRole("button", { name: "Run again" }).click();
  await dialog.getByText("Run 1 failed run again?").waitFor();
  await dialog.getByRole("button", { name: "Run again" }).click();
  await page.getByText("1 run is queued", { exact: true }).waitFor();
  await row.getByText("2 times").waitFor();
  await cli("schedule", "edit", "nightly", "--shell", "true");
  await cli("schedule", "trigger", "nightly");
  await row.getByText("closed").waitFor();
  await page.getByRole("link", { name: "No open incidents" }).waitFor();

  // Nothing ran, and nobody polls: that a schedule is late, and that somebody sees to it, comes by the live stream.
  await page.addInitScript(() => {
    const every = window.setInterval;
    window.setInterval = (call, pause, ...given) => (pause < 10_000 ? every(call, pause, ...given) : 0);
  });
  await page.goto("/incidents");
  await page.getByRole("link", { name: "No open incidents" }).waitFor();
  await cli("schedule", "add", "forgotten", "daily 03:00", "--shell", "true", "--fresh", "1s");
  await page.getByRole("link", { name: "1 open incident" }).waitFor();
  const late = page.getByRole("button", { name: /forgotten/ });
  await late.waitFor();
  const [found] = JSON.parse(await cli("incident", "ls", "--json"));
  await cli("incident", "ack", String(found.id));
  await late.getByText("acknowledged").waitFor();
});
