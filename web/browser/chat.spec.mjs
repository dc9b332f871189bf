// A session is a conversation: a prompt is typed and its agent watched live, a second message interrupts it and is
// answered, the next is stopped, and after a reload the same thread is there.
import { eventually, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli }) => {
  const dialog = page.getByRole("dialog");
  const thread = page.getByRole("log", { name: "Conversation" });
  const box = page.getByLabel("Message", { exact: true });
  const sent = (text) => thread.getByRole("article").filter({ hasText: text });
  const under = (text) => sent(text).getByText("running", { exact: true });
  await logIn();

  // The first message creates the session: to an agent, which is watched while it works.
  await page.goto("/sessions");
  await page.getByRole("button", { name: "Send a message" }).click();
  await dialog.getByLabel("Session").fill("desk");
  await dialog.getByRole("radio", { name: "Agent" }).click();
  await dialog.getByLabel("Model").fill("opus");
  await dialog.getByLabel("Prompt", { exact: true }).fill("play:hang the first");
  await dialog.getByText('ostinato session send desk \'play:hang the first\' --agent --model opus').waitFor();
  await dialog.getByRole("button", { name: "Send" }).click();
  await page.getByRole("link", { name: "desk" }).click();
  await page.getByRole("heading", { level: 1, name: "desk" }).waitFor();
  await under("the first").waitFor();
  await sent("the first").getByRole("group", { name: /^Output of run/ }).getByText("I wait.").waitFor();

  // A second message interrupts it, and is answered by the same agent.
  await page.getByText("To agent claude, opus.").waitFor();
  await page.getByLabel("Mode").selectOption("Interrupt");
  await box.fill("what about");
  await box.press("Shift+Enter");
  await box.pressSequentially("the second?");
  await box.press("Enter");
  await sent("the second?").first().waitFor(); // on its way, or there
  expect((await box.inputValue()) === "", "the box is empty");
  await sent("the first").getByText("interrupted", { exact: true }).waitFor();
  await sent("the second?").getByText(/^message \d+: what about$/).waitFor();
  await sent("the second?").getByText("$0.25").waitFor();
  const [second] = JSON.parse(await cli("run", "ls", "--json"));
  expect(second.work.prompt === "what about\nthe second?", "the prompt is what was typed");
  expect(second.work.model === "opus", "it went to the same agent");

  // The next is stopped.
  await box.fill("play:hang the third");
  await box.press("Enter");
  await under("the third").waitFor();
  const stop = page.getByRole("button", { name: "Stop", exact: true });
  await eventually("it can be stopped", async () => (await stop.getAttribute("aria-disabled")) !== "true");
  await stop.click();
  await sent("the third").getByText("stopped", { exact: true }).waitFor();

  // Whoever comes later finds the same, and sees the end of it.
  await page.reload();
  await sent("the third").getByText("stopped", { exact: true }).waitFor();
  await sent("the first").getByText("interrupted", { exact: true }).waitFor();
  await sent("the second?").getByText(/^message \d+: what about$/).waitFor();
  expect((await thread.getByRole("article").count()) === 3, "nothing is told twice");

  // On a phone the thread is at its end, and the box is in sight, above the navigation.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.reload();
  await sent("the third").getByText("stopped", { exact: true }).waitFor();
  const isAtEnd = () =>
    thread.evaluate((log) => log.scrollHeight > log.clientHeight && log.scrollHeight - log.scrollTop - log.clientHeight < 3);
  await eventually("the thread is at its end", isAtEnd);
  await thread.evaluate((log) => log.scrollTo(0, 0));
  await page.getByRole("button", { name: "To the newest" }).click();
  await eventually("the thread is at its end again", isAtEnd);
  await eventually("the box is in sight", async () => {
    const send = await page.getByRole("button", { name: "Send", exact: true }).boundingBox();
    const bar = await page.getByRole("navigation", { name: "Pages" }).last().boundingBox();
    return send.y + send.height <= bar.y;
  });

  // What happened is told in its own tab.
  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByRole("list", { name: "Events" }).getByText("enqueued").first().waitFor();
});
