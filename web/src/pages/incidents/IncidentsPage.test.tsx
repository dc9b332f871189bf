import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Delivery, Incident } from "@/api/types";
import { IncidentsPage } from "@/pages/incidents/IncidentsPage";
import { renderPage } from "@/testing/render";
import { ME, stubServer } from "@/testing/server";

const incident = (changes: Partial<Incident> = {}): Incident => ({
  id: 1,
  subject: "nightly",
  cause: "exit_status",
  kind: "failed",
  state: "open",
  opened_at: "2026-03-01T03:00:00Z",
  last_at: "2026-03-01T04:00:00Z",
  closed_at: null,
  count: 3,
  reopened: 0,
  reason: "exited with status 7",
  first_run: 5,
  last_run: 7,
  schedule: "nightly",
  project: null,
  closed_reason: null,
  acked_at: null,
  acked_by: null,
  note: null,
  ...changes,
});

const TOLD = {
  id: 4,
  channel: "phone",
  kind: "failed",
  state: "sent",
  at: "2026-03-01T03:00:00Z",
  sent_at: "2026-03-01T03:00:01Z",
  error: null,
} as Delivery;

const answers = (...items: Incident[]) => ({
  "GET /api/incidents": { items, next: null, open: items.filter(({ state }) => state === "open").length, zone: "UTC" },
  "GET /api/incidents/1": { ...items[0], deliveries: [TOLD], runs: [7, 6, 5], reruns: [], zone: "UTC" },
});

it("an incident says how often it happened, and when it is opened what was told to whom", async () => {
  stubServer(answers(incident(), incident({ id: 2, subject: "hourly", state: "closed", count: 1 })));
  renderPage(IncidentsPage);
  const rows = await screen.findAllByRole("button", { expanded: false });
  const names = rows.map((row) => row.textContent);
  expect(names[0]).toMatch(/open.*nightly.*exit_status.*3 times/);
  expect(names[1]).toMatch(/closed.*hourly.*once/);
  await userEvent.click(rows[0]!);
  const told = await screen.findByRole("list", { name: "Told" });
  expect(told.textContent).toMatch(/phone.*failed.*sent/);
  expect(screen.getByRole("link", { name: "run 7" }).getAttribute("href")).toBe("/runs/7");
});

it("what waits says why and until when, and what was run again says what became of it", async () => {
  const waits = { reason: "cool_down", text: "cool-down of its incident", until: "2026-03-01T05:00:00Z" } as const;
  const reruns = [{ run: 9, of: 7, state: "succeeded", reason: null }];
  const told = [{ ...TOLD, state: "pending", sent_at: null, waits }];
  const detail = { ...incident(), deliveries: told, runs: [7], reruns, zone: "UTC" };
  stubServer({ ...answers(incident()), "GET /api/incidents/1": detail });
  renderPage(IncidentsPage);
  await userEvent.click(await screen.findByRole("button", { name: /nightly/ }));
  const list = await screen.findByRole("list", { name: "Told" });
  expect(list.textContent).toMatch(/pending.*waits: cool-down of its incident, until .*05:00/);
  expect(screen.getByRole("link", { name: "run 9" }).getAttribute("href")).toBe("/runs/9");
  expect(screen.getByText("Run again", { selector: "dt" }).nextElementSibling?.textContent).toMatch(/succeeded/i);
});

it("acknowledging sends the note", async () => {
  const asked = stubServer({ ...answers(incident()), "POST /api/incidents/1/ack": incident() });
  renderPage(IncidentsPage);
  await userEvent.click(await screen.findByRole("button", { name: /nightly/ }));
  await userEvent.click(await screen.findByRole("button", { name: "Acknowledge" }));
  await userEvent.type(screen.getByLabelText("Note"), "on it");
  await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Acknowledge" }));
  await expect.poll(() => asked.find((one) => one.method === "POST")?.body).toEqual({ note: "on it" });
});

it("running again is confirmed first, and says how many are queued", async () => {
  const asked = stubServer({ ...answers(incident()), "POST /api/incidents/1/rerun": { runs: [8, 9, 10], left: 0 } });
  renderPage(IncidentsPage);
  await userEvent.click(await screen.findByRole("button", { name: /nightly/ }));
  await userEvent.click(await screen.findByRole("button", { name: "Run again" }));
  const dialog = screen.getByRole("dialog");
  expect(dialog.textContent).toMatch(/Run 3 failed runs again\?/);
  expect(asked.some((one) => one.method === "POST")).toBe(false);
  await userEvent.click(within(dialog).getByRole("button", { name: "Run again" }));
  await screen.findByText("3 runs are queued");
});

it("who may only look is told why", async () => {
  stubServer({ ...answers(incident()), "GET /api/me": { ...ME, role: "viewer" } });
  renderPage(IncidentsPage);
  await userEvent.click(await screen.findByRole("button", { name: /nightly/ }));
  const button = await screen.findByRole("button", { name: "Acknowledge" });
  expect(button.getAttribute("aria-disabled")).toBe("true");
});

it("without incidents it says how people are told", async () => {
  stubServer(answers());
  renderPage(IncidentsPage);
  await screen.findByText("No incidents yet");
});
