// The page in another app, under a prefix and with that app's login: its addresses, its requests and its stream.
import { BASE, eventually, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, context }) => {
  const opened = page.waitForEvent("websocket");

  // The app's own login leads back to what was asked for.
  await page.goto("/jobs/runs?state=succeeded");
  await page.locator("input[name=password]").fill("open sesame");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
  expect(page.url() === `${BASE}/jobs/runs?state=succeeded`, `the page that was asked for is shown, not ${page.url()}`);
  const stream = (await opened).url();
  expect(stream.endsWith("/jobs/api/live"), `the stream is below the prefix, not at ${stream}`);

  // What the app enqueues is seen as it ends, over the stream.
  const signup = await page.request.post("/signup?to=ada");
  expect(signup.ok(), "the app answers beside the page");
  await page.getByRole("link", { name: /send_mail/ }).first().waitFor();

  // Links and reloads stay below the prefix.
  await page.getByRole("link", { name: "Schedules" }).first().click();
  await page.getByRole("heading", { level: 1, name: "Schedules" }).waitFor();
  await page.getByRole("link", { name: "refresh" }).first().click();
  await page.getByRole("heading", { level: 1, name: "refresh" }).waitFor();
  expect(page.url() === `${BASE}/jobs/schedules/refresh`, `a link leads below the prefix, not to ${page.url()}`);
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "refresh" }).waitFor();
  await page.getByRole("button", { name: "Run now" }).first().click();
  await eventually("it ran", async () => {
    const runs = await page.request.get("/jobs/api/schedules/refresh/runs", { headers: { "X-Origin-Key": "host" } });
    return (await runs.json()).items.some((run) => run.state === "succeeded");
  });

  // Whoever is logged in there logs out there.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search and commands" }).fill("log out");
  await page.getByText("Nothing found.").waitFor();
  await page.keyboard.press("Escape");
  await context.clearCookies();
  const password = page.locator("input[name=password]");
  // What the page loads anew by itself may lead there before the click does.
  await Promise.any([page.getByRole("link", { name: "Lanes" }).first().click(), password.waitFor()]);
  await password.waitFor();
  expect(page.url().startsWith(`${BASE}/login?next=%2Fjobs%2F`), `the login of the app is shown, not ${page.url()}`);
});
