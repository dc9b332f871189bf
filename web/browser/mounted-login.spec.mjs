// The page in another app with logins of its own: the link, the cookie and the way out are below the prefix.
import { BASE, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, context, logIn }) => {
  await page.goto("/jobs/lanes");
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await page.getByText(`ostinato login --port ${new URL(BASE).port} --prefix /jobs`).waitFor();

  await logIn();
  expect(page.url() === `${BASE}/jobs/`, `the first page is shown, not ${page.url()}`);
  const cookie = (await context.cookies(`${BASE}/jobs/api`)).find((each) => each.name.startsWith("ostinato-"));
  expect(cookie.path === "/jobs", "the cookie is not for the app around");
  const kept = await page.evaluate(() => Object.keys(localStorage));
  expect(kept.includes("ostinato.origin_key/jobs"), `the key is of this mount: ${kept}`);

  await page.goto("/jobs/settings");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  expect(page.url() === `${BASE}/jobs/login`, `the login below the prefix is shown, not ${page.url()}`);
});
