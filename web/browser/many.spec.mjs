// Ten thousand schedules: the list scrolls to its end, and only what is in sight is in the document.
import { eventually, expect, scenario } from "./scenario.mjs";

const COUNT = 10_000;
const MOST_ROWS = 120;

await scenario(async ({ page, logIn }) => {
  await logIn();
  await page.goto("/schedules?sort=name");
  await page.getByText("10,000 schedules").waitFor();
  await page.getByRole("link", { name: "customer-00000" }).waitFor();
  const rows = page.getByRole("listitem").filter({ has: page.getByRole("switch") });
  expect((await rows.count()) < MOST_ROWS, "few rows are in the document at the top");

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
