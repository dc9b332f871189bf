// One login serves every tab and outlives a reload; a file comes with it; its end is the end in every tab, and so is the
// next login its beginning.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, context, logIn, cli }) => {
  await cli("exec", "--shell", "echo hello from the run");
  await logIn();
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();

  const second = await context.newPage();
  const isLive = new Promise((resolve) =>
    second.on("websocket", (socket) =>
      socket.on("framereceived", ({ payload }) => JSON.parse(payload).type === "subscribed" && resolve(true)),
    ),
  );
  await second.goto("/runs");
  await second.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
  await isLive;

  await second.goto("/runs/1");
  await second.getByText("hello from the run").first().waitFor();
  const [file] = await Promise.all([
    second.waitForEvent("download"),
    second.getByRole("button", { name: "Download" }).click(),
  ]);
  expect(file.suggestedFilename() === "run-1.txt", `it is called run-1.txt, not ${file.suggestedFilename()}`);
  const saved = join(process.env.PAGE_ARTIFACTS, "run-1.txt");
  await file.saveAs(saved);
  const text = await readFile(saved, "utf8");
  expect(text.includes("hello from the run"), `the file has the output: ${text}`);

  await second.keyboard.press("Control+k");
  await second.getByRole("combobox", { name: "Search and commands" }).fill("log out");
  await second.keyboard.press("Enter");
  await second.getByRole("heading", { name: "Log in" }).waitFor();
  await page.getByRole("link", { name: "Lanes" }).first().click();
  await page.getByRole("heading", { name: "Log in" }).waitFor();

  const token = /ost_\S+/.exec(await cli("token", "add", "laptop", "--role", "viewer"))[0];
  await second.getByLabel("Token").fill(token);
  await second.getByRole("button", { name: "Log in" }).click();
  await second.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.getByRole("heading", { level: 1, name: "Lanes" }).waitFor();
});
