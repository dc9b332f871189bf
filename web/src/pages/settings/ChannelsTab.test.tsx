import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Channel, Rule } from "@/api/types";
import { ChannelsTab } from "@/pages/settings/ChannelsTab";
import { renderPage } from "@/testing/render";
import { ME, problem, stubServer } from "@/testing/server";

const channel = (changes: Partial<Channel> = {}): Channel => ({
  name: "phone",
  url: "json://***",
  note: null,
  quiet: "22:00-07:00",
  digest: null,
  zone: "Europe/Berlin",
  cool_down: "15m",
  created_at: "2026-03-01T03:00:00Z",
  sent_at: null,
  failures: 0,
  error: null,
  retry_at: null,
  waiting: 0,
  waits: null,
  ...changes,
});

const RULE: Rule = {
  id: 3,
  channel: "phone",
  on: ["failed", "missed"],
  project: "blog",
  digest: null,
  zone: "UTC",
  digest_at: null,
  created_at: "2026-03-01T03:00:00Z",
};

const answers = (...items: Channel[]) => ({
  "GET /api/channels": { items, zone: "UTC" },
  "GET /api/rules": { items: items.length > 0 ? [RULE] : [], zone: "UTC" },
  "GET /api/projects": { items: [{ name: "blog", folder: "/srv", env: {}, schedules: 1 }], zone: "UTC" },
});

it("a new channel is sent with its URL, which is typed unseen", async () => {
  const asked = stubServer({ ...answers(), "POST /api/channels": channel() });
  renderPage(ChannelsTab);
  await userEvent.click(await screen.findByRole("button", { name: "New channel" }));
  await userEvent.type(screen.getByLabelText("Name"), "phone");
  expect(screen.getByLabelText("URL").getAttribute("type")).toBe("password");
  await userEvent.type(screen.getByLabelText("URL"), "json://example.org/secret");
  await userEvent.type(screen.getByLabelText("Quiet hours"), "22:00-07:00");
  await userEvent.click(screen.getByRole("button", { name: "Add channel" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(asked.find((one) => one.method === "POST")?.body).toEqual({
    name: "phone",
    url: "json://example.org/secret",
    quiet: "22:00-07:00",
  });
});

it("a changed channel keeps its URL, and an emptied field is taken away", async () => {
  const asked = stubServer({ ...answers(channel()), "POST /api/channels": channel({ quiet: null }) });
  renderPage(ChannelsTab);
  await userEvent.click(await screen.findByRole("button", { name: "Change channel phone" }));
  await userEvent.clear(screen.getByLabelText("Quiet hours"));
  await userEvent.click(screen.getByRole("button", { name: "Save channel" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(asked.find((one) => one.method === "POST")?.body).toEqual({
    name: "phone",
    quiet: "none",
    digest: "none",
    note: "none",
    zone: "Europe/Berlin",
    cool_down: "15m",
  });
});

it("a test says what became of it", async () => {
  stubServer({
    ...answers(channel(), channel({ name: "mail" })),
    "POST /api/channels/phone/test": { state: "sent", error: null },
    "POST /api/channels/mail/test": { state: "failed", error: "the server answered 500" },
  });
  renderPage(ChannelsTab);
  await userEvent.click(await screen.findByRole("button", { name: "Send a test to phone" }));
  await screen.findByText("A test was sent to phone");
  await userEvent.click(screen.getByRole("button", { name: "Send a test to mail" }));
  await screen.findByText("the server answered 500");
});

it("a channel that schedules name is removed only when that is said", async () => {
  const asked = stubServer({
    ...answers(channel()),
    "DELETE /api/channels/phone": ({ query }: { query: URLSearchParams }) =>
      query.get("force") === "true" ? null : problem(409, "schedules notify channel 'phone': nightly"),
  });
  renderPage(ChannelsTab);
  await userEvent.click(await screen.findByRole("button", { name: "Remove channel phone" }));
  const dialog = screen.getByRole("dialog");
  await userEvent.click(within(dialog).getByRole("button", { name: "Remove channel" }));
  await screen.findByText(/schedules notify channel 'phone': nightly/);
  await userEvent.click(within(dialog).getByRole("checkbox"));
  await userEvent.click(within(dialog).getByRole("button", { name: "Remove channel" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(asked.filter((one) => one.method === "DELETE")).toHaveLength(2);
});

it("a rule is added for a project, with what it is told of", async () => {
  const asked = stubServer({ ...answers(channel()), "POST /api/rules": RULE });
  renderPage(ChannelsTab);
  await userEvent.click(await screen.findByRole("button", { name: "New rule" }));
  const dialog = screen.getByRole("dialog");
  await userEvent.selectOptions(await within(dialog).findByLabelText("Of"), "blog");
  await userEvent.click(within(dialog).getByLabelText(/^recovered/));
  await userEvent.click(within(dialog).getByLabelText(/^late/));
  await userEvent.click(within(dialog).getByRole("button", { name: "Add rule" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(asked.find((one) => one.method === "POST")?.body).toEqual({
    channel: "phone",
    on: ["failed", "broken", "missed"],
    project: "blog",
  });
});

it("who is no admin sees channels and rules, and changes nothing", async () => {
  stubServer({ ...answers(channel({ url: "***" })), "GET /api/me": { ...ME, role: "operator" } });
  renderPage(ChannelsTab);
  const button = await screen.findByRole("button", { name: "New channel" });
  await waitFor(() => expect(button.getAttribute("aria-disabled")).toBe("true"));
  expect((await screen.findByRole("list", { name: "Rules" })).textContent).toMatch(/phone.*project blog.*failed.*missed/);
});
