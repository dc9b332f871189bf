// Every page, wide, at the width of a phone and at the narrowest that must do, and what opens over a page: nothing hangs
// over the edge, every control has a name that is read out, axe finds nothing, and one heading says where one is.
import { axeFindsNothing } from "./axe.mjs";
import { eventually, expect, scenario } from "./scenario.mjs";

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
  "/incidents",
  "/timeline",
  "/calendars",
  "/lanes",
  "/sessions",
  "/sessions/chat%3Aada",
  "/nodes",
  "/settings",
  "/nothing-is-here",
];
/** The tabs of the settings have the title of their page. */
const TABS = ["/settings?tab=channels", "/settings?tab=tokens", "/settings?tab=logins", "/settings?tab=audit"];
/** What opens over a page, by the buttons that are pressed. */
const OVER = [
  ["/", "Search and commands"],
  ["/", "Times are in"],
  ["/", "Theme"],
  ["/schedules/reindex-search", "Runs"],
  ["/schedules/reindex-search", "More actions"],
  ["/schedules/reindex-search", "More actions", "Why didn’t it run?"],
  ["/schedules/reindex-search", "More actions", "Remove"],
  ["/calendars", "New calendar"],
  ["/calendars", "Change calendar office"],
  ["/calendars", "Remove calendar office"],
  ["/lanes", "Pause"],
  ["/lanes", "More actions for lane cron", "Set rate…"],
  ["/sessions", "Send a message"],
  ["/nodes", "Drain"],
  ["/settings?tab=channels", "New channel"],
  ["/settings?tab=tokens", "New token"],
];
/** Buttons of a wide screen, which a narrow one has in its menu. */
const OVER_WIDE = ["Pause…", "Backfill…"].map((name) => ["/schedules/reindex-search", name]);
const OVER_NARROW = OVER_WIDE.map(([path, name]) => [path, "More actions", name]);
/** A screen of 1280 pixels at 400 %: WCAG 1.4.10. */
const NARROWEST = { width: 320, height: 640 };
const CONTROLS = new Set([
  "button", "checkbox", "combobox", "link", "listbox", "menuitem", "radio", "searchbox", "slider", "spinbutton", "switch",
  "tab", "textbox",
]);

await scenario(async ({ page, logIn }) => {
  await logIn();
  const titles = new Map();
  for (const [width, height] of [[1280, 900], [360, 740]]) {
    await page.setViewportSize({ width, height });
    for (const path of [...PAGES, ...TABS]) {
      await page.goto(path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("networkidle");
      const where = `${path} at ${width} pixels`;
      await nothingHangsOver(page, where);
      await everyControlHasAName(page, where);
      await axeFindsNothing(page, where);
      const outline = await page.evaluate(() => ({
        headings: document.querySelectorAll("h1").length,
        language: document.documentElement.lang,
        twice: [...document.querySelectorAll("[id]")].map((one) => one.id).filter((id, at, all) => all.indexOf(id) !== at),
      }));
      expect(outline.headings === 1, `${where} has one h1, not ${outline.headings}`);
      expect(outline.language === "en", `${where} says its language`);
      expect(outline.twice.length === 0, `${where} has no id twice: ${outline.twice}`);
      if (!TABS.includes(path)) titles.set(path, await page.title());
      if (width === 1280) continue;
      await page.setViewportSize(NARROWEST);
      await nothingHangsOver(page, `${path} at ${NARROWEST.width} pixels`);
      await page.setViewportSize({ width, height });
    }
    if (width !== 1280) await page.setViewportSize(NARROWEST);
    if (width !== 1280) await toastsStandAboveTheBar(page);
    const over = [...OVER, ...(width === 1280 ? OVER_WIDE : OVER_NARROW)];
    for (const [path, ...names] of over) await opensWithinThePage(page, path, names);
  }
  expect(new Set(titles.values()).size === PAGES.length, `each page has its own title: ${[...titles.values()]}`);
});

/** Also on a phone whose lower edge is taken by the system. */
async function toastsStandAboveTheBar(page) {
  const phone = await page.context().newCDPSession(page);
  await phone.send("Emulation.setSafeAreaInsetsOverride", { insets: { bottom: 34 } });
  await eventually("the bar leaves the system its room, and toasts end above the bar", async () => {
    const { toasts, bar } = await page.evaluate(() => ({
      toasts: document.querySelector('[aria-label^="Notifications"] > ol').getBoundingClientRect().bottom,
      bar: [...document.querySelectorAll("nav")].map((one) => one.getBoundingClientRect()).at(-1).top,
    }));
    return bar < 640 - 56 - 30 && toasts < bar;
  });
  await phone.detach();
}

async function opensWithinThePage(page, path, names) {
  if (!page.url().endsWith(path)) await page.goto(path);
  for (const name of names) {
    const exact = name === "Runs" || name === "Pause";
    await page.getByRole("button", { name, exact }).or(page.getByRole("menuitem", { name })).first().click();
  }
  const screen = page.viewportSize();
  const where = `${names.join(", ")} on ${path} at ${screen.width} pixels`;
  const over = page.locator('[role="dialog"], [role="menu"]');
  await over.waitFor();
  await eventually(`${where} is on the screen`, async () => {
    const { x, y, width, height } = await over.boundingBox();
    return x >= 0 && y >= 0 && x + width <= screen.width && y + height <= screen.height;
  });
  await nothingHangsOver(page, where);
  await everyControlHasAName(page, where);
  if (screen.width >= 1280) await axeFindsNothing(page, where, '[role="dialog"], [role="menu"]');
  await page.keyboard.press("Escape");
  await over.waitFor({ state: "hidden" });
}

async function nothingHangsOver(page, where) {
  let over;
  const fits = async () => {
    over = await page.evaluate(async () => {
      // Charts measure themselves anew some time after their box has changed.
      for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
      const edge = document.documentElement.clientWidth;
      if (document.documentElement.scrollWidth <= edge) return [];
      const wide = [...document.body.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > edge + 1);
      return wide.slice(0, 3).map((one) => one.outerHTML.slice(0, 160));
    });
    return over.length === 0;
  };
  await eventually("it fits", fits).catch(() =>
    expect(false, `${where} does not scroll sideways; these hang over:\n${over.join("\n")}`),
  );
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
