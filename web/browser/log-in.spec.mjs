// The link logs in once; an address that was asked for without a login is shown after it; logging out closes the door.
import { BASE, eventually, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, context, logIn, cli }) => {
  await page.goto("/lanes");
  await page.getByRole("heading", { name: "Log in" }).waitFor();

  await logIn();
  expect(!page.url().includes("code"), "the code does not stay in the address");
  const cookie = (await context.cookies()).find((each) => each.name.startsWith("ostinato-"));
  expect(cookie.httpOnly && cookie.sameSite === "Strict", "no script reads the cookie, and no other page sends it");

  // In a browser that knows nothing yet, the used link says so, and a token opens.
  const other = await context.browser().newContext({ baseURL: BASE });
  const stranger = await other.newPage();
  await stranger.goto(process.env.PAGE_LOGIN);
  await stranger.getByRole("alert").waitFor();
  await stranger.goto("/schedules?state=on&q=back");
  await stranger.getByRole("heading", { name: "Log in" }).waitFor();
  const token = /ost_\S+/.exec(await cli("token", "add", "laptop", "--role", "operator"))[0];
  await stranger.getByLabel("Token").fill(token);
  await stranger.getByRole("button", { name: "Log in" }).click();
  await stranger.getByRole("heading", { level: 1, name: "Schedules" }).waitFor();
  expect(stranger.url() === `${BASE}/schedules?state=on&q=back`, `what was asked for is shown, not ${stranger.url()}`);
  expect((await stranger.getByLabel("Search schedules").inputValue()) === "back", "with its search");
  await other.close();

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search and commands" }).fill("log out");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await eventually("the cookie is gone", async () => !(await context.cookies()).some((each) => each.name.startsWith("ostinato-")));
  await page.goto("/");
  await page.getByRole("heading", { name: "Log in" }).waitFor();
});
