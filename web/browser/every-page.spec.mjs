// Every page, wide and at the width of a phone: nothing hangs over the edge, every control has a name that is read out,
// and one heading says where one is.
import { expect, scenario } from "./scenario.mjs";

const RUN = process.env.SHOP_RUN;
const PAGES = [
  "/",
  "/schedules",
  "/schedules/reindex-search",
  "/schedules/import-prices",
  "/schedules/new",
  "/schedules/backup-database/edit",
  `/runs/${RUN}`,
  "/runs",
  "/timeline",
  "/lanes",
  "/sessions",
  "/sessions/chat%3Aada",
  "/nodes",
  "/settings",
  "/nothing-is-here",
];
const CONTROLS = new Set([
  "button", "checkbox", "combobox", "link", "listbox", "menuitem", "radio", "searchbox", "slider", "spinbutton", "switch",
  "tab", "textbox",
]);

await scenario(async ({ page, logIn }) => {
  await logIn();
  const titles = new Map();
  for (const [width, height] of [[1280, 900], [360, 740]]) {
    await page.setViewportSize({ width, height });
    for (const path of PAGES) {
      await page.goto(path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("networkidle");
      const where = `${path} at ${width} pixels`;
      await nothingHangsOver(page, where);
      await everyControlHasAName(page, where);
      const outline = await page.evaluate(() => ({
        headings: document.querySelectorAll("h1").length,
        language: document.documentElement.lang,
        twice: [...document.querySelectorAll("[id]")].map((one) => one.id).filter((id, at, all) => all.indexOf(id) !== at),
      }));
      expect(outline.headings === 1, `${where} has one h1, not ${outline.headings}`);
      expect(outline.language === "en", `${where} says its language`);
      expect(outline.twice.length === 0, `${where} has no id twice: ${outline.twice}`);
      titles.set(path, await page.title());
    }
  }
  expect(new Set(titles.values()).size === PAGES.length, `each page has its own title: ${[...titles.values()]}`);
});

async function nothingHangsOver(page, where) {
  const over = await page.evaluate(() => {
    const edge = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= edge) return [];
    const wide = [...document.body.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > edge + 1);
    return wide.slice(0, 3).map((one) => one.outerHTML.slice(0, 160));
  });
  expect(over.length === 0, `${where} does not scroll sideways; these hang over:\n${over.join("\n")}`);
}

/** As Chromium tells it to a screen reader. */
async function everyControlHasAName(page, where) {
  const reader = await page.context().newCDPSession(page);
  const { nodes } = await reader.send("Accessibility.getFullAXTree");
  const controls = nodes.filter((node) => !node.ignored && CONTROLS.has(node.role?.value));
  expect(controls.length > 0, `${where} has controls`);
  const nameless = controls.filter((node) => !node.name?.value?.trim());
  const described = [];
  for (const { backendDOMNodeId } of nameless.slice(0, 5)) {
    const { outerHTML } = await reader.send("DOM.getOuterHTML", { backendNodeId: backendDOMNodeId });
    described.push(outerHTML.slice(0, 200));
  }
  expect(nameless.length === 0, `${where}: every control has a name, but not\n${described.join("\n")}`);
  await reader.detach();
}
