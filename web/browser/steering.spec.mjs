// Lanes, sessions, nodes and tokens: what an operator does on a bad day.
import { eventually, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli }) => {
  const lane = async (name) => JSON.parse(await cli("lane", "ls", "--json")).find((one) => one.name === name);
  const dialog = page.getByRole("dialog");
  await logIn();

  // A lane is paused with a note, resized, and resumed.
  await page.getByRole("link", { name: "Lanes" }).first().click();
  await page.getByRole("heading", { level: 1, name: "Lanes" }).waitFor();
  const team = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "team" }) });
  await team.getByRole("button", { name: "Pause" }).click();
  await dialog.getByLabel("Note").fill("the provider is down");
  await dialog.getByRole("button", { name: "Pause" }).click();
  await page.getByText("the provider is down").first().waitFor();
  expect((await lane("team")).paused, "the lane is paused");
  await page.getByRole("button", { name: "Limit of lane team: 100. Change it" }).click();
  await page.getByLabel("New limit of lane team").fill("7");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Limit of lane team: 7. Change it" }).waitFor();
  await team.getByRole("button", { name: "Resume" }).click();
  await eventually("the lane goes on with its new limit", async () => {
    const { paused, limit } = await lane("team");
    return !paused && limit === 7;
  });

  // A message goes into a new session; its run is stopped.
  await page.getByRole("link", { name: "Sessions" }).first().click();
  await page.getByRole("button", { name: "Send" }).first().click();
  await dialog.getByLabel("Session").fill("chat:ada");
  await dialog.getByLabel("Task").fill("chat.reply");
  await dialog.getByLabel("Payload").fill("Is the blue lamp in stock?");
  await dialog.getByRole("button", { name: "Send" }).click();
  await page.getByRole("link", { name: "chat:ada" }).click();
  await page.getByRole("heading", { level: 1, name: "chat:ada" }).waitFor();
  const stop = page.getByRole("button", { name: "Stop", exact: true });
  await eventually("its run is under way", async () => (await stop.getAttribute("aria-disabled")) !== "true");
  await page.getByRole("button", { name: "Stop all" }).click();
  await dialog.getByRole("button", { name: "Stop all" }).click();
  await eventually("nothing of it is under way", async () => {
    const [session] = JSON.parse(await cli("session", "ls", "--json"));
    return session.running === 0 && session.queued === 0;
  });
  await page.getByRole("log", { name: "Conversation" }).getByText("stopped", { exact: true }).waitFor();

  // A node takes no more work for a while.
  await page.getByRole("link", { name: "Nodes" }).first().click();
  await page.getByRole("button", { name: "Drain" }).click();
  await dialog.getByRole("button", { name: "Drain" }).click();
  await page.getByText("draining", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("alive", { exact: true }).first().waitFor();

  // A token is made, shown once, and removed; the log knows who did what.
  await page.getByRole("link", { name: "Settings" }).first().click();
  await page.getByRole("tab", { name: "Tokens" }).click();
  await page.getByRole("button", { name: "New token" }).first().click();
  await dialog.getByLabel("Name").fill("deploy");
  await dialog.getByRole("button", { name: "Create token" }).click();
  await dialog.getByText(/ost_/).waitFor();
  await page.keyboard.press("Escape");
  await page.mouse.click(5, 5);
  expect(await dialog.getByText(/ost_/).isVisible(), "what is shown once is not thrown away by chance");
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.getByText("deploy").first().waitFor();
  await page.getByRole("tab", { name: /Audit/ }).click();
  for (const verb of ["lane.pause", "session.stop_all", "node.drain", "token.add"]) {
    await page.getByRole("list", { name: "Audit log" }).getByText(verb, { exact: true }).first().waitFor();
  }
});
