// Without a mouse: the palette finds a schedule and an action, keys lead to pages, `?` lists them, Escape leaves.
import { eventually, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli }) => {
  await cli("schedule", "add", "backup", "daily 03:00", "--shell", "true");
  await cli("schedule", "add", "cleanup", "every 1h", "--shell", "true");
  await logIn();

  await page.keyboard.press("Control+k");
  const palette = page.getByRole("combobox", { name: "Search and commands" });
  await palette.fill("clean");
  await page.getByRole("option", { name: "cleanup" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "cleanup" }).waitFor();

  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keys" });
  await keys.getByText("Search and commands").waitFor();
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "hidden" });

  for (const [letter, title] of [["r", "Runs"], ["l", "Lanes"], ["t", "Timeline"], ["m", "Sessions"], ["n", "Nodes"], ["s", "Schedules"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(letter);
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
  }
  await page.getByRole("link", { name: "backup" }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("o");
  await eventually("`j` and `o` open a schedule", async () => /\/schedules\/(backup|cleanup)$/.test(page.url()));

  await page.goto("/lanes");
  await page.getByRole("heading", { level: 1, name: "Lanes" }).waitFor();
  await page.keyboard.press("Tab");
  expect((await focused(page)).text === "Skip to the page", "the first stop of Tab leads past the navigation");
  const seen = new Set();
  for (let step = 0; step < 12; step += 1) {
    await page.keyboard.press("Tab");
    const { text, outlined } = await focused(page);
    expect(outlined, `one sees where the focus is: ${text}`);
    seen.add(text);
  }
  expect(seen.size > 8, "Tab goes on from control to control");
});

function focused(page) {
  return page.evaluate(() => {
    const element = document.activeElement;
    const style = getComputedStyle(element);
    const text = element.getAttribute("aria-label") ?? element.textContent.trim();
    return { text, outlined: style.outlineStyle !== "none" || style.boxShadow !== "none" };
  });
}
