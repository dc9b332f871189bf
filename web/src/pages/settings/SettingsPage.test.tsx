import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { SettingsPage } from "@/pages/settings/SettingsPage";
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
  await userEvent.click(screen.getByRole("button", { name: "Make it" }));
  await screen.findByText("ost_secret");
  expect(asked.find((one) => one.method === "POST")?.body).toEqual({ name: "ci", role: "viewer", expires: "90d" });
  await userEvent.click(screen.getByRole("button", { name: "Done" }));
  await userEvent.click(screen.getByRole("button", { name: "New token" }));
  await screen.findByLabelText("Name");
  expect(screen.queryByText("ost_secret")).toBeNull();
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

it("who is no admin sees neither tokens nor the audit log", async () => {
  const asked = stubServer({ "GET /api/me": { ...ME, role: "operator" } });
  renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=tokens" });
  await screen.findByText("operator");
  expect(screen.getAllByRole("tab").map((tab) => tab.textContent)).toEqual(["You"]);
  expect(asked.some((one) => one.path === "/api/tokens")).toBe(false);
});

it("the filters of the audit log are in the address", async () => {
  const asked = stubServer({ "GET /api/audit": { items: [], next: null } });
  const { router } = renderPage(SettingsPage, { route: "/settings", at: "/settings?tab=audit&who=ada" });
  await userEvent.selectOptions(await screen.findByLabelText("Verb"), "lane.pause");
  await waitFor(() => expect(router.state.location.search).toEqual({ tab: "audit", who: "ada", verb: "lane.pause" }));
  await waitFor(() => expect(asked.at(-1)?.query.toString()).toBe("who=ada&verb=lane.pause"));
});
