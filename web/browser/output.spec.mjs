// The output of a run that prints long lines: what was printed last is in sight on a small laptop, wrapped lines never lie
// over each other, and at its end the wheel moves the page.
import { axeFindsNothing } from "./axe.mjs";
import { eventually, expect, scenario } from "./scenario.mjs";

await scenario(
  async ({ page, logIn, cli, touch }) => {
    await logIn();
    const print = `for i in $(seq 1 60); do echo "line $i ${"x".repeat(400)}"; done`;
    await cli("schedule", "add", "talk", "daily 03:00", "--shell", `${print}; until [ -e enough ]; do sleep 0.1; done`);
    const id = (await cli("schedule", "trigger", "talk")).trim();
    await page.goto(`/runs/${id}`);
    const last = page.getByRole("log").getByText(/^line 60 /);
    await last.waitFor();
    await eventually("the last line is on the screen", async () => {
      const { y, height } = await last.boundingBox();
      return y > 0 && y + height <= 800;
    });
    await axeFindsNothing(page, "a run that prints");

    for (const name of ["Times", "Times", "Wrap", "Wrap", "Times"]) {
      await page.getByRole("button", { name, exact: true }).click();
      await eventually(`no lines overlap after ${name}`, async () => (await overlaps(page)) === 0);
    }

    await last.hover();
    const before = await page.evaluate(() => window.scrollY);
    await eventually("the wheel goes on to the page", async () => {
      await page.mouse.wheel(0, 400);
      return (await page.evaluate(() => window.scrollY)) > before;
    });
    await touch("enough");
    await page.getByRole("heading", { level: 1, name: /succeeded/ }).waitFor();
  },
  { viewport: { width: 1280, height: 800 } },
);

/** How many lines begin before the one above them ends. */
function overlaps(page) {
  return page.evaluate(async () => {
    for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
    const rows = [...document.querySelectorAll("[data-index]")].map((row) => row.getBoundingClientRect());
    rows.sort((one, other) => one.top - other.top);
    return rows.slice(1).filter((row, index) => row.top < rows[index].bottom - 1).length;
  });
}
