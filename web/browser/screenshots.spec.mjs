// Every page in light, dark and at the width of a phone, into docs/images. `make screenshots` plays it.
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { BASE, expect, scenario } from "./scenario.mjs";

const IMAGES = process.env.SCREENSHOT_FOLDER;
const RUN = process.env.SCREENSHOT_RUN;
const LARGEST = 200 * 1024;

const PAGES = [
  ["overview", "/"],
  ["schedules", "/schedules"],
  ["schedule", "/schedules/reindex-search"],
  ["broken", "/schedules/import-prices"],
  ["form", "/schedules/new"],
  ["run", `/runs/${RUN}`],
  ["runs", "/runs"],
  ["timeline", "/timeline"],
  ["calendars", "/calendars"],
  ["lanes", "/lanes"],
  ["sessions", "/sessions"],
  ["session", "/sessions/chat%3Aada"],
  ["nodes", "/nodes"],
  ["incidents", "/incidents"],
  ["settings", "/settings"],
  ["channels", "/settings?tab=channels"],
  ["tokens", "/settings?tab=tokens"],
  ["audit", "/settings?tab=audit"],
];

const LOOKS = [
  ["light", { colorScheme: "light", viewport: { width: 1280, height: 900 } }],
  ["dark", { colorScheme: "dark", viewport: { width: 1280, height: 900 } }],
  ["phone", { colorScheme: "light", viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }],
];

await scenario(async ({ page: first, context }) => {
  mkdirSync(IMAGES, { recursive: true });
  await first.goto("/login");
  await first.getByLabel("Token").fill(process.env.SCREENSHOT_TOKEN);
  await first.getByRole("button", { name: "Log in" }).click();
  await first.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  const storageState = await context.storageState();
  for (const [look, options] of LOOKS) {
    const other = await context.browser().newContext({
      baseURL: BASE,
      storageState,
      timezoneId: "Europe/Berlin",
      locale: "en-GB",
      reducedMotion: "reduce",
      ...options,
    });
    const page = await other.newPage();
    await page.goto("/login?then=/");
    await picture(page, "login", look);
    for (const [name, path] of PAGES) {
      await page.goto(path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      if (name === "form") await fillForm(page);
      if (name === "incidents") await openIncident(page);
      await picture(page, name, look);
    }
    await other.close();
  }
  // A page of its own: the policy of ours forbids the styles of the message.
  const message = await context.newPage();
  await message.setContent(process.env.SCREENSHOT_MESSAGE);
  await message.screenshot({ path: join(IMAGES, "message.png"), clip: { x: 0, y: 0, width: 448, height: 330 } });
});

async function fillForm(page) {
  await page.getByLabel("Name", { exact: true }).fill("rebuild-sitemap");
  await page.getByLabel("Timing", { exact: true }).fill("daily 02:30");
  await page.getByLabel("Command", { exact: true }).fill("./sitemap --all | gzip > public/sitemap.xml.gz");
  await page.getByText(/02:30 every day/).first().waitFor();
  await page.getByRole("heading", { level: 1 }).click();
}

async function openIncident(page) {
  await page.getByRole("button", { name: /reserve-stock/ }).click();
  await page.getByRole("list", { name: "Told" }).getByText("phone").waitFor();
}

async function picture(page, name, look) {
  // What is loading pulses, what is loaded does not; charts draw on the next frame.
  await page.waitForLoadState("networkidle");
  await page.evaluate(() => document.fonts.ready.then(() => new Promise(requestAnimationFrame)));
  const path = join(IMAGES, `${name}-${look}.png`);
  await page.screenshot({ path, animations: "disabled" });
  const size = statSync(path).size;
  expect(size <= LARGEST, `${path} has ${size} bytes, at most ${LARGEST}`);
}
