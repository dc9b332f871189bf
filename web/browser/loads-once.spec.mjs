// A page of a quiet server asks for everything once, also for what the live stream could have told of; and what changes
// after that comes by itself.
import { eventually, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, logIn, cli }) => {
  await cli("schedule", "add", "quiet", "daily 03:00", "--shell", "echo done");
  await logIn();
  let asked = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (request.method() === "GET" && url.pathname.startsWith("/api/")) asked.push(url.pathname + url.search);
  });
  const askedTwiceBy = async (path) => {
    asked = [];
    await page.goto(path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    // Longer than events are gathered, and shorter than what is asked for again and again.
    await page.waitForTimeout(1500);
    expect(asked.length >= 3, `${path} was loaded: ${asked}`);
    return asked.filter((one, place) => asked.indexOf(one) !== place);
  };
  for (const path of ["/", "/schedules", "/schedules/quiet", "/incidents", "/runs", "/sessions", "/lanes", "/timeline"]) {
    let twice;
    // On a busy machine the stream may begin too late to be waited for, which is rare.
    for (let visit = 0; visit < 3 && twice?.length !== 0; visit += 1) twice = await askedTwiceBy(path);
    expect(twice.length === 0, `${path} asks for everything once, not twice for ${twice}`);
  }
  await page.goto("/schedules");
  await page.getByRole("link", { name: "quiet" }).first().waitFor();
  await cli("schedule", "add", "later", "daily 04:00", "--shell", "echo done");
  await eventually("what comes later is shown", () => page.getByRole("link", { name: "later" }).first().isVisible());
});
