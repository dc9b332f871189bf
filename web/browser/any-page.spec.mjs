// For the tests of the harness itself: opens a page, waits for its heading, and asks the test for one thing.
import { expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, cli }) => {
  await page.goto("/", { waitUntil: "networkidle" });
  await page.getByRole("heading", { name: process.env.HEADING }).waitFor({ timeout: 3_000 });
  expect((await cli("echo", "hello")) === "echo hello", "the test answers");
});
