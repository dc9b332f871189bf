// Ten thousand schedules, with the runs of many: the list scrolls without a halt, only what is in sight is in the
// document, and whoever opens one and goes back is where they were.
import { eventually, expect, scenario } from "./scenario.mjs";

const COUNT = 10_000;
const MOST_ROWS = 120;
// How many times as long as a frame of a plain document may one take, the usual and the longest. Chromium draws without
// a graphics card here, beside a busy server; what makes the list halt does so in each round.
const USUAL_TIMES = 8;
const LONGEST_TIMES = 60;
const ROUNDS = 3;

await scenario(async ({ page, logIn }) => {
  await logIn();
  await page.goto("/schedules?sort=name");
  await page.getByText("10,000 schedules").waitFor();
  await page.getByRole("link", { name: "customer-00000" }).waitFor();
  const rows = page.getByRole("listitem").filter({ has: page.getByRole("switch") });
  expect((await rows.count()) < MOST_ROWS, "few rows are in the document at the top");
  const drawn = page.getByRole("img", { name: /^Last 60 runs: \d+ succeeded, \d+ failed/ });
  await eventually("the last runs of many are drawn", async () => (await drawn.count()) > 5);

  const plain = await plainFrame(page.context());
  const seen = [];
  let isSmooth = false;
  while (!isSmooth && seen.length < ROUNDS) {
    const frames = await framesOfScrolling(page);
    const [usual, longest] = [frames[Math.floor(frames.length / 2)], frames.at(-1)];
    isSmooth = frames.length > 20 && usual < USUAL_TIMES * plain && longest < LONGEST_TIMES * plain;
    seen.push(`${frames.length} frames, usual ${usual} ms, longest ${longest} ms`);
  }
  expect(isSmooth, `it scrolls smoothly (a plain frame: ${plain} ms): ${seen.join("; ")}`);
  await eventually("the last runs are drawn further down too", async () => (await drawn.count()) > 5);

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

  // The list is as long as it is, and whoever goes to its end need not do so twice.
  await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
  expect((await atRest(page)) > 40 * COUNT, "the whole list has its place");
  await page.getByRole("link", { name: "customer-09999" }).waitFor();
  expect((await rows.count()) < MOST_ROWS, "few rows are in the document at the end");

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

/** How long the usual frame takes in a document of as many rows that does nothing. */
async function plainFrame(context) {
  const page = await context.newPage();
  await page.setContent(`<ul>${"<li>a row</li>".repeat(COUNT)}</ul>`);
  const frames = await framesOfScrolling(page);
  await page.close();
  return frames[Math.floor(frames.length / 2)];
}

/** The milliseconds between frames, the shortest first, while a hand turns the wheel: in the list, over two pages. */
async function framesOfScrolling(page) {
  await page.mouse.move(640, 600);
  await watchFrames(page);
  for (let turn = 0; turn < 40; turn += 1) {
    await page.mouse.wheel(0, 600);
    await page.waitForTimeout(40);
  }
  return framesSeen(page);
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
