// Without a mouse: the palette finds a schedule and an action, keys lead to pages, `?` lists them, Escape leaves, and
// the focus is where it was.
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
  const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await keys.getByText("Search and commands").waitFor();
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "hidden" });

  for (const [letter, title] of [["r", "Runs"], ["c", "Calendars"], ["l", "Lanes"], ["t", "Timeline"], ["m", "Sessions"], ["n", "Nodes"], ["s", "Schedules"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(letter);
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
  }
  await page.getByRole("link", { name: "backup" }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("o");
  await eventually("`j` and `o` open a schedule", async () => /\/schedules\/(backup|cleanup)$/.test(page.url()));

  // After what lay over the page, the focus is on what opened it.
  await page.goto("/schedules/backup");
  await page.getByRole("heading", { level: 1, name: "backup" }).waitFor();
  const search = page.getByRole("button", { name: "Search and commands" });
  await search.focus();
  await page.keyboard.press("Control+k");
  await palette.waitFor();
  await page.keyboard.press("Escape");
  await comesBack(search, "after the palette");
  for (const name of ["Runs", "Pause…", "Backfill…"]) {
    const button = page.getByRole("button", { name, exact: true });
    await opensAndLeaves(button, button, `after ${name}`);
  }
  const more = page.getByRole("button", { name: "More actions" });
  for (const item of ["Why didn’t it run?", "Remove"]) {
    await more.focus();
    await page.keyboard.press("Enter");
    await opensAndLeaves(page.getByRole("menuitem", { name: item }), more, `after ${item}`);
  }
  await page.goto("/lanes");
  const limit = page.getByRole("button", { name: /^Limit of lane cron/ });
  await limit.focus();
  await page.keyboard.press("Enter");
  await page.getByLabel("New limit of lane cron").fill("9");
  await page.keyboard.press("Enter");
  await comesBack(page.getByRole("button", { name: "Limit of lane cron: 9. Change it" }), "after a new limit");

  // Whoever speaks to the computer switches keys off that are a character.
  await page.goto("/settings");
  await page.getByRole("switch", { name: "Single-character shortcuts" }).press("Space");
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.keyboard.press("n");
  expect(page.url().endsWith("/settings"), "nothing happens by a letter");
  await page.keyboard.press("Control+k");
  await palette.waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("switch", { name: "Single-character shortcuts" }).press("Space");

  await page.goto("/lanes");
  await page.getByRole("heading", { level: 1, name: "Lanes" }).waitFor();
  await page.keyboard.press("Tab");
  expect((await focused(page)).text === "Skip to content", "the first stop of Tab leads past the navigation");
  const seen = new Set();
  for (let step = 0; step < 12; step += 1) {
    await page.keyboard.press("Tab");
    const { text, outlined } = await focused(page);
    expect(outlined, `one sees where the focus is: ${text}`);
    seen.add(text);
  }
  expect(seen.size > 8, "Tab goes on from control to control");
});

async function comesBack(control, when) {
  await eventually(`the focus comes back ${when}`, () => control.evaluate((one) => one === document.activeElement));
}

async function opensAndLeaves(opener, back, when) {
  const { keyboard } = opener.page();
  await opener.focus();
  await keyboard.press("Enter");
  const dialog = opener.page().getByRole("dialog");
  await dialog.waitFor();
  await keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  await comesBack(back, when);
}

function focused(page) {
  return page.evaluate(() => {
    const element = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const text = element.getAttribute("aria-label") ?? element.textContent.trim();
    return { text, outlined: outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2 };
  });
}
