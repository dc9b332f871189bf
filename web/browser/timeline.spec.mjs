// Three schedules that ran every ten seconds for more than a day, of which few runs can be listed one by one: the day is
// drawn without a gap, every failure stands out, and the table tells the same.
import { axeFindsNothing } from "./axe.mjs";
import { eventually, expect, scenario } from "./scenario.mjs";

const ROWS = ["backup", "poll", "sync"];

await scenario(async ({ page, logIn }) => {
  await logIn();
  for (const [width, height] of [[1280, 800], [375, 740]]) {
    await page.setViewportSize({ width, height });
    await page.goto("/timeline");
    for (const name of ROWS) {
      const bars = page.locator(`[data-bar][aria-label^="${name}: "]:not([aria-label*=": due"])`);
      await bars.first().waitFor();
      const seen = await bars.evaluateAll((all) =>
        all.map((bar) => ({
          ...bar.getBoundingClientRect().toJSON(),
          label: bar.ariaLabel,
          failed: [...bar.querySelectorAll("span")].filter((mark) => mark.style.backgroundColor.includes("failed")).length,
        })),
      );
      const gaps = seen.slice(1).map((bar, index) => bar.left - seen[index].right);
      expect(gaps.every((gap) => gap < 3), `the row of ${name} has no gap at ${width} pixels: ${gaps}`);
      expect(seen.some((bar) => /\d,\d\d\d succeeded, \d failed/.test(bar.label)), `it counts: ${seen[0].label}`);
      const failed = seen.reduce((sum, bar) => sum + bar.failed, 0);
      expect(failed >= 5 && failed <= 8, `every failure of ${name} is marked: ${failed}`);
    }
    await axeFindsNothing(page, `the timeline at ${width} pixels`);
  }
  await page.getByText("Table", { exact: true }).click();
  const counted = page.getByRole("row").filter({ hasText: "succeeded" }).filter({ hasText: /× [1-9],\d\d\d/ });
  await eventually("the table counts what it does not list", async () => (await page.getByText(/The first 500 of/).count()) > 0 || (await counted.count()) > 0);
});
