// What work prints, counts, answers, fails with, and is called, is text on every page that shows it: nothing of it runs.
import { eventually, expect, scenario } from "./scenario.mjs";

const { RUN, ANSWER } = process.env;
const NAME = "<img src=x onerror='window.hacked=1'>";
const SESSION = "<script>window.hacked=1</script>";

await scenario(async ({ page, logIn }) => {
  await logIn();
  const pages = [
    ["/", "<img src=x onerror"],
    ["/schedules", NAME],
    [`/schedules/${encodeURIComponent(NAME)}`, NAME],
    [`/schedules/${encodeURIComponent(NAME)}/edit`, NAME],
    ["/runs", NAME],
    [`/runs/${RUN}`, "error <script>"],
    [`/runs/${RUN}`, "output <script>"],
    [`/runs/${RUN}`, "total <script>"],
    [`/runs/${RUN}`, "output javascript:"],
    [`/runs/${ANSWER}`, "result <script>"],
    ["/timeline", ""],
    ["/lanes", ""],
    ["/sessions", SESSION],
    [`/sessions/${encodeURIComponent(SESSION)}`, SESSION],
    [`/sessions/${encodeURIComponent(SESSION)}`, "payload <script>"],
    [`/sessions/${encodeURIComponent(SESSION)}`, "result <script>"],
    ["/nodes", ""],
    ["/settings?tab=audit", NAME],
  ];
  for (const [path, text] of pages) {
    await page.goto(path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.waitForLoadState("networkidle");
    if (text !== "") {
      const isThere = async () =>
        page.evaluate(
          (wanted) =>
            document.body.textContent.includes(wanted) ||
            [...document.querySelectorAll("input, textarea")].some((one) => one.value.includes(wanted)),
          text,
        );
      await eventually(`${path} shows ${text}`, isThere);
    }
    const found = await page.evaluate(() => ({
      hacked: window.hacked,
      scripts: [...document.querySelectorAll("script")].filter((one) => one.textContent.includes("hacked")).length,
      images: document.querySelectorAll('img[src="x"]').length,
      links: [...document.querySelectorAll("a")].filter((one) => one.href.startsWith("javascript:")).length,
    }));
    expect(found.hacked === undefined, `${path}: nothing ran`);
    expect(found.scripts + found.images + found.links === 0, `${path}: no markup came of it: ${JSON.stringify(found)}`);
  }
});
