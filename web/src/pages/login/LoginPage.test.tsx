import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { keys } from "@/api/keys";
import { originKey } from "@/api/originKey";
import { LoginPage, loginCommand, safePlace } from "@/pages/login/LoginPage";
import { renderPage } from "@/testing/render";
import { MADE_LOGIN, ME, problem, stubServer } from "@/testing/server";

it("names the port that the command cannot know", () => {
  expect(["", "8321", "9411"].map((port) => loginCommand(port))).toEqual([
    "ostinato login",
    "ostinato login",
    "ostinato login --port 9411",
  ]);
  expect(loginCommand("8000", "/jobs")).toBe("ostinato login --port 8000 --prefix /jobs");
});

it("a link with a code logs in once, and the code leaves the address at once", async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const asked = stubServer({ "POST /api/login": () => held.then(() => MADE_LOGIN) });
  const { router } = renderPage(LoginPage, { route: "/login", at: "/login?code=abc&then=%2Flanes" });
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]?.body).toEqual({ code: "abc" });
  await waitFor(() => expect(router.state.location.href).toBe("/login"));
  release();
  await waitFor(() => expect(router.state.location.pathname).toBe("/lanes"));
  expect(asked.filter((one) => one.path === "/api/login")).toHaveLength(1);
});

it("a code that was used up says so and leaves the field for a token", async () => {
  stubServer({ "POST /api/login": problem(401, "this code was used or is too old; run 'ostinato login' for another") });
  renderPage(LoginPage, { route: "/login", at: "/login?code=old" });
  await screen.findByText(/this code was used/);
  expect(screen.getByLabelText("Token")).toBeDefined();
});

it("a token logs in too", async () => {
  const asked = stubServer({ "POST /api/login": MADE_LOGIN });
  const { router } = renderPage(LoginPage, { route: "/login" });
  await userEvent.type(await screen.findByLabelText("Token"), " ost_1 {Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/"));
  expect(asked[0]?.body).toEqual({ token: "ost_1" });
});

it("the key of the login is kept for this origin, and not with what is shown", async () => {
  stubServer({ "POST /api/login": MADE_LOGIN });
  const { router, cache } = renderPage(LoginPage, { route: "/login" });
  await userEvent.type(await screen.findByLabelText("Token"), "ost_1{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/"));
  expect(originKey()).toBe("key");
  expect(cache.getQueryData(keys.me)).toEqual(ME);
});

it("a login in another tab is enough", async () => {
  stubServer({});
  const { router } = renderPage(LoginPage, { route: "/login", at: "/login?then=%2Flanes" });
  await screen.findByLabelText("Token");
  window.dispatchEvent(new StorageEvent("storage", { key: "ostinato.origin_key", newValue: null }));
  expect(router.state.location.pathname).toBe("/login");
  window.dispatchEvent(new StorageEvent("storage", { key: "ostinato.origin_key", newValue: "key" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/lanes"));
});

it.each([
  ["/lanes?q=1", "/lanes?q=1"],
  ["//evil.example", "/"],
  ["/\\evil.example", "/"],
  ["https://evil.example", "/"],
  ["/login?then=/login", "/"],
  [undefined, "/"],
])("after the login, %s leads to %s", (then, place) => {
  expect(safePlace(then)).toBe(place);
});
