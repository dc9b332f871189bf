// The server is in Berlin and the browser in Tokyo: times are in the browser's zone until another is chosen.
import { eventually, expect, scenario } from "./scenario.mjs";

const ZONE = "Asia/Tokyo";

await scenario(
  async ({ page, logIn, cli }) => {
    const due = new Date(Date.now() + 3 * 3_600_000);
    due.setUTCMinutes(17, 0, 0);
    const clock = (zone) => due.toLocaleTimeString("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" });
    await cli("schedule", "add", "report", `at ${due.toISOString().replace(".000", "")}`, "--shell", "true");
    await logIn();
    await page.goto("/schedules");
    const row = page.getByRole("listitem").filter({ hasText: "report" });
    const times = row.locator("time");
    const next = (zone) => times.filter({ hasText: new RegExp(`^(tomorrow )?${clock(zone)}$`) });
    await next(ZONE).waitFor();

    const countdown = times.filter({ hasText: /^in \d h \d\d m$/ });
    const shown = await countdown.textContent();
    const left = Math.round((due - Date.now()) / 60_000);
    const [hours, minutes] = shown.match(/\d+/g).map(Number);
    expect(Math.abs(hours * 60 + minutes - left) <= 1, `the countdown ${shown} is ${left} minutes`);
    expect((await countdown.getAttribute("title")).includes(ZONE), "the whole time names the zone");

    for (const [choice, zone] of [["Schedule's zone", "Europe/Berlin"], ["UTC", "UTC"]]) {
      await page.getByRole("button", { name: "Times are in" }).click();
      await page.getByRole("menu").getByText(choice, { exact: true }).click();
      await next(zone).waitFor();
      expect((await countdown.textContent()).startsWith("in "), "what is left is the same in every zone");
    }

    await page.reload();
    await next("UTC").waitFor(); // the choice is remembered

    await cli("schedule", "add", "soon", "every 1h", "--shell", "true");
    await page.getByRole("link", { name: "soon" }).waitFor(); // without a reload
    const soon = page.getByRole("listitem").filter({ hasText: "soon" }).locator("time", { hasText: /^in \d+ m \d\d s$/ });
    const before = await soon.textContent();
    await eventually("the countdown ticks", async () => (await soon.textContent()) !== before);
  },
  { timezoneId: ZONE },
);
