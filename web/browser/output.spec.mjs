// The output of a run that prints long lines: what was printed last is in sight on a small laptop, wrapped lines never lie
// over each other, and at its end the wheel moves the page.
import { axeFindsNothing } from "./axe.mjs";
import { eventually, expect, scenario } from "./scenario.mjs";

await scenario(
  async ({ page, logIn, cli, touch }) => {
    await logIn();
    const print = `for i in $(seq 1 60); do echo "line $i ${"x".repeat(400)}"; done`;
    // It has many steps before it, which are shown on its page, too.
    const steps = ["one", "two", "three", "four", "five"];
    for (const step of steps) await cli("schedule", "add", step, "daily 03:00", "--shell", "true");
    const timing = `after ${steps.join(" and ")} within 1h`;
    await cli("schedule", "add", "talk", timing, "--shell", `${print}; until [ -e enough ]; do sleep 0.1; done`);
    for (const step of steps) await cli("schedule", "trigger", step);
    const runs = async () => JSON.parse(await cli("run", "ls", "--schedule", "talk", "--json"));
    const [{ id }] = await eventually("it runs", async () => ((await runs()).length > 0 ? runs() : null));
    await page.goto(`/runs/${id}`);
    await page.getByRole("list", { name: "Runs after" }).getByText("five").waitFor();
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
