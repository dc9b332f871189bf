// Ten thousand schedules, with the runs of many: the list scrolls without a halt, only what is in sight is in the
// document, and whoever opens one and goes back is where they were.
import { eventually, expect, scenario } from "./scenario.mjs";

const COUNT = 10_000;
const MOST_ROWS = 120;
// Chromium draws without a graphics card here, beside a busy server: a halt that a person would call one is longer.
const LONGEST_FRAME_MS = 1000;
const USUAL_FRAME_MS = 150;

await scenario(async ({ page, logIn }) => {
  await logIn();
  await page.goto("/schedules?sort=name");
  await page.getByText("10,000 schedules").waitFor();
  await page.getByRole("link", { name: "customer-00000" }).waitFor();
  const rows = page.getByRole("listitem").filter({ has: page.getByRole("switch") });
  expect((await rows.count()) < MOST_ROWS, "few rows are in the document at the top");
  const drawn = page.getByRole("img", { name: /^Last 60 runs: \d+ succeeded, \d+ failed/ });
  expect((await drawn.count()) > 5, "the last runs of many are drawn");

  // As a hand turns a wheel, over two pages of the list.
  await page.mouse.move(640, 600);
  await watchFrames(page);
  for (let turn = 0; turn < 40; turn += 1) {
    await page.mouse.wheel(0, 600);
    await page.waitForTimeout(40);
  }
  const frames = await framesSeen(page);
  expect((await drawn.count()) > 5, "the last runs are drawn further down too");
  expect(frames.length > 20, `frames were drawn while it scrolled: ${frames.length}`);
  const [usual, longest] = [frames[Math.floor(frames.length / 2)], frames.at(-1)];
  expect(longest < LONGEST_FRAME_MS, `the longest frame took ${longest} ms`);
  expect(usual < USUAL_FRAME_MS, `every other frame took longer than ${usual} ms`);

  // Somebody looks at one and goes back. The click must not scroll by itself to a row that is drawn out of sight.
  await atRest(page);
  const name = await rows.nth(Math.floor((await rows.count()) / 2)).getByRole("link").first().textContent();
  const link = page.getByRole("link", { name, exact: true });
  await link.scrollIntoViewIfNeeded();
  const before = await atRest(page);
  expect(before > 15_000, `the list has scrolled: ${before}`);
  await link.click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.goBack();
  await link.waitFor();
  const after = await atRest(page);
  expect(Math.abs(after - before) < 200, `the list is at ${after}, and was at ${before}`);

  let place = 0;
  await eventually(
    "the end of the list is reached",
    async () => {
      await page.mouse.wheel(0, 200_000);
      const last = await rows.last().getAttribute("aria-posinset");
      place = Math.max(place, Number(last));
      return place >= COUNT;
    },
    60_000,
  );
  expect((await rows.count()) < MOST_ROWS, "few rows are in the document at the end");
  await page.getByRole("link", { name: "customer-09999" }).waitFor();

  await page.getByRole("searchbox", { name: "Search schedules" }).or(page.getByLabel("Search schedules")).first().fill("customer-0420");
  await page.getByText("10 schedules found").waitFor();
  expect(page.url().includes("q=customer-0420"), "the search is in the address");
});

/** Where the page has come to rest: at the same place for ten frames. */
async function atRest(page) {
  return page.evaluate(async () => {
    let place = -1;
    for (let frames = 0; frames < 10; frames += 1) {
      if (window.scrollY !== place) frames = 0;
      place = window.scrollY;
      await new Promise(requestAnimationFrame);
    }
    return place;
  });
}

/** Notes how long each frame takes, from now on. */
async function watchFrames(page) {
  await page.evaluate(() => {
    window.frameTimes = [];
    let last = performance.now();
    const note = (now) => {
      window.frameTimes.push(Math.round(now - last));
      last = now;
      window.frameRequest = requestAnimationFrame(note);
    };
    window.frameRequest = requestAnimationFrame(note);
  });
}

/** The milliseconds between the frames since then, the shortest first. */
async function framesSeen(page) {
  return page.evaluate(() => {
    cancelAnimationFrame(window.frameRequest);
    return window.frameTimes.sort((left, right) => left - right);
  });
}
