import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { keys } from "@/api/keys";
import { SettingsPage } from "@/pages/settings/SettingsPage";
import { characterKeys } from "@/state/shortcuts";
import { renderPage } from "@/testing/render";
import { ME, problem, stubServer } from "@/testing/server";

const token = {
  id: 3,
  name: "ci",
  role: "viewer",
  owner: "ada",
  created_at: "2026-11-16T10:00:00Z",
  used_at: null,
  expires_at: null,
};

it("a new token is shown once, and is gone when the dialog is closed", async () => {
  const asked = stubServer({
    "GET /api/tokens": { items: [] },
    "POST /api/tokens": { ...token, token: "ost_secret" },
  });
  renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=tokens" });
  await userEvent.click(await screen.findByRole("button", { name: "New token" }));
  await userEvent.type(await screen.findByLabelText("Name"), "ci");
  await userEvent.click(screen.getByRole("button", { name: "Create token" }));
  await screen.findByText("ost_secret");
  expect(asked.find((one) => one.method === "POST")?.body).toEqual({ name: "ci", role: "viewer", expires: "90d" });
  await userEvent.click(screen.getByRole("button", { name: "Done" }));
  await userEvent.click(screen.getByRole("button", { name: "New token" }));
  await screen.findByLabelText("Name");
  expect(screen.queryByText("ost_secret")).toBeNull();
});

it("a token that is shown once stays until somebody says that it is copied", async () => {
  stubServer({ "GET /api/tokens": { items: [] }, "POST /api/tokens": { ...token, token: "ost_secret" } });
  renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=tokens" });
  await userEvent.click(await screen.findByRole("button", { name: "New token" }));
  await userEvent.type(await screen.findByLabelText("Name"), "ci{Enter}");
  await screen.findByText("ost_secret");
  await userEvent.keyboard("{Escape}");
  expect(screen.getByText("ost_secret")).toBeDefined();
});

it("what the server says about a field stands at the field", async () => {
  const errors = [
    { field: "name", message: "there is a token 'ci' already", hint: "choose another name", position: null },
  ];
  stubServer({ "GET /api/tokens": { items: [] }, "POST /api/tokens": problem(409, "taken", { errors }) });
  renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=tokens" });
  await userEvent.click(await screen.findByRole("button", { name: "New token" }));
  await userEvent.type(await screen.findByLabelText("Name"), "ci{Enter}");
  await waitFor(() => expect(screen.getByLabelText("Name").getAttribute("aria-invalid")).toBe("true"));
  const described = screen.getByLabelText("Name").getAttribute("aria-describedby") ?? "";
  const words = described.split(" ").map((id) => document.getElementById(id)?.textContent);
  expect(words.join()).toContain("choose another name");
});

it("a login is listed, and ended after a question", async () => {
  const login = { ...token, who: "ada", token: "ci", expires_at: "2026-12-16T10:00:00Z", current: false };
  const mine = { ...login, id: 4, token: null, current: true };
  const asked = stubServer({ "GET /api/logins": { items: [login, mine] }, "DELETE /api/logins/3": null });
  renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=logins" });
  await screen.findByText("with token ci");
  const [first, second] = screen.getAllByRole("listitem").map((row) => row.textContent?.includes("this browser"));
  expect([first, second]).toEqual([false, true]);
  await userEvent.click(screen.getByRole("button", { name: "Log out login 4 of ada" }));
  await screen.findByText("This is the browser you are using. You will have to log in again.");
  await userEvent.click(screen.getByRole("button", { name: "Go back" }));
  await userEvent.click(screen.getByRole("button", { name: "Log out login 3 of ada" }));
  expect(asked.some((one) => one.method === "DELETE")).toBe(false);
  await userEvent.click(await screen.findByRole("button", { name: "Log out browser" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(asked.filter((one) => one.method === "DELETE").map((one) => one.path)).toEqual(["/api/logins/3"]);
});

it("who is no admin sees neither tokens nor the audit log", async () => {
  const asked = stubServer({ "GET /api/me": { ...ME, role: "operator" } });
  renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=tokens" });
  await screen.findByText("operator");
  expect(screen.getAllByRole("tab").map((tab) => tab.textContent)).toEqual(["You", "Channels"]);
  expect(asked.some((one) => one.path === "/api/tokens")).toBe(false);
});

it("the filters of the audit log are in the address", async () => {
  const asked = stubServer({ "GET /api/audit": { items: [], next: null } });
  const { router } = renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=audit&who=ada" });
  await userEvent.selectOptions(await screen.findByLabelText("Verb"), "lane.pause");
  await waitFor(() => expect(router.state.location.search).toEqual({ tab: "audit", who: "ada", verb: "lane.pause" }));
  await waitFor(() => expect(asked.at(-1)?.query.toString()).toBe("who=ada&verb=lane.pause"));
});

it("how far back the audit log goes is a word in its key: time that goes by makes no other list", async () => {
  const asked = stubServer({ "GET /api/audit": { items: [], next: null } });
  const { cache } = renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=audit&since=24h" });
  await screen.findByText("No entry matches these filters");
  const from = Date.parse(asked.at(-1)?.query.get("from") ?? "");
  expect(Math.abs(Date.now() - 86_400_000 - from)).toBeLessThan(60_000);
  const [query] = cache.getQueryCache().findAll({ queryKey: keys.audit });
  expect(query?.queryKey[1]).toEqual({ since: "24h" });
});

it("an audit log without entries says what makes one, or clears its filters", async () => {
  stubServer({ "GET /api/audit": { items: [], next: null } });
  const { router } = renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=audit&door=cli" });
  await userEvent.click(await screen.findByRole("button", { name: "Clear filters" }));
  await screen.findByText("ostinato schedule trigger NAME --db sqlite:////srv/jobs.db");
  expect(router.state.location.search).toEqual({ tab: "audit" });
});

it("keys that are a character can be switched off here", async () => {
  stubServer({});
  renderPage(SettingsPage, { route: "/settings", at: "/settings" });
  const control = await screen.findByRole("switch", { name: "Single-character shortcuts" });
  expect(control.getAttribute("aria-checked")).toBe("true");
  await userEvent.click(control);
  expect(characterKeys.get()).toBe("off");
  await userEvent.click(control);
  expect(characterKeys.get()).toBe("on");
});
