// Words that no line can hold, in errors, names, reasons and notes: they stay in their boxes, on every page that shows
// them, and the whole of a long error stands there once.
import { eventually, expect, scenario } from "./scenario.mjs";

const NAME = process.env.LONG_NAME;
const ERROR = "x".repeat(3000);

await scenario(async ({ page, logIn, cli }) => {
  await logIn();
  const left = [];
  const broken = async () => JSON.parse(await cli("schedule", "show", NAME, "--json")).broken;
  await eventually("its failures have switched it off", broken);
  const runs = JSON.parse(await cli("run", "ls", "--state", "failed", "--json"));
  const run = runs.find((one) => one.schedule === NAME);
  const pages = [
    `/runs/${run.id}`, "/", "/schedules", `/schedules/${NAME}`, `/schedules/${NAME}?runs=1`,
    `/schedules/${NAME}/edit?fix=1`, "/schedules/paused", "/runs", "/incidents", "/timeline",
    "/timeline?view=table", "/lanes", "/sessions", `/sessions/${NAME}`, "/nodes", "/settings", "/settings?tab=channels",
    "/settings?tab=audit",
  ];
  for (const [width, height] of [[1280, 900], [390, 844]]) {
    await page.setViewportSize({ width, height });
    for (const path of pages) {
      await page.goto(path);
      await page.getByRole("heading", { level: 1 }).or(page.getByRole("dialog")).first().waitFor();
      await page.waitForLoadState("networkidle");
      if (path === "/incidents") await page.getByRole("button", { name: "endless" }).or(page.locator("main li button")).first().click();
      left.push(...(await leavesItsBox(page)).map((what) => `${path.replace(NAME, "NAME")} at ${width} pixels: ${what}`));
    }
  }
  // On the screen of a phone still.
  for (const [path, item] of [[`/schedules/${NAME}`, /^Why/], [`/schedules/${NAME}`, "Remove…"], ["/schedules/paused", /^Why/]]) {
    await page.goto(path);
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: item }).click();
    await page.getByRole("dialog").waitFor();
    await page.waitForLoadState("networkidle");
    left.push(...(await leavesItsBox(page)).map((what) => `${item} at ${path.replace(NAME, "NAME")}: ${what}`));
  }
  expect(left.length === 0, `everything stays in its box:\n${left.join("\n")}`);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(`/runs/${run.id}`);
  await page.getByRole("heading", { name: "Error" }).waitFor();
  const whole = await page.evaluate((error) => {
    const boxes = [...document.querySelectorAll("main p, main pre")].filter((one) => one.closest("[data-output]") === null);
    return boxes.filter((one) => one.textContent.includes(error)).map((one) => one.getBoundingClientRect().height);
  }, ERROR);
  expect(whole.length === 1, `the whole error stands there once, not ${whole.length} times`);
  expect(whole[0] <= 400, `it does not take the page for itself: ${whole[0]} pixels`);
});

async function leavesItsBox(page) {
  let out;
  const stays = async () => {
    out = await page.evaluate(async () => {
      for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
      const edge = document.documentElement.clientWidth;
      const found = [];
      if (document.documentElement.scrollWidth > edge) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) {
        if (text.data.length < 20) continue;
        const range = document.createRange();
        range.selectNodeContents(text);
        const right = Math.max(...[...range.getClientRects()].map((one) => one.right), 0);
        for (let box = text.parentElement; box !== null; box = box.parentElement) {
          const style = getComputedStyle(box);
          if (style.overflowX !== "visible") break;
          const isBox = parseFloat(style.borderRightWidth) > 0;
          if (isBox && right > box.getBoundingClientRect().right + 1) {
            found.push(`${text.data.slice(0, 30)}… in ${text.parentElement.outerHTML.slice(0, 160)} leaves ${box.outerHTML.slice(0, 90)}`);
            break;
          }
          if (style.position === "fixed") break;
        }
      }
      return found;
    });
    return out.length === 0;
  };
  await eventually("it stays", stays, 2000).catch(() => undefined);
  return out;
}
