import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type LiveHandler, live } from "@/api/live";
import type { Schedule } from "@/api/types";
import { listenForKeys } from "@/state/shortcuts";
import { renderPage } from "@/testing/render";
import { sampleSchedule } from "@/testing/samples";
import { stubServer } from "@/testing/server";
import { SchedulesPage } from "./SchedulesPage";

const schedule = (id: number, name: string): Schedule => sampleSchedule({ id, name, recent: [] });
const page = (...items: Schedule[]) => ({ items, next: null, total: items.length });
const open = () => renderPage(SchedulesPage, { route: "/schedules" });
const [backup, report, mail] = [schedule(1, "backup"), schedule(2, "report"), schedule(3, "mail")];

/** What the server lists; a test changes it, and loads the list anew. */
let listed: Schedule[];
let unlisten: () => void;
beforeEach(() => {
  listed = [backup, report, mail];
  unlisten = listenForKeys();
});
afterEach(() => unlisten());
const answers = { "GET /api/projects": { items: [] }, "GET /api/schedules": () => page(...listed) };

describe("a list that moves", () => {
  it("keeps the dialog and its text when the row of the switch is gone", async () => {
    stubServer(answers);
    const { cache } = open();
    await userEvent.click(await screen.findByLabelText("Switch backup on or off"));
    await userEvent.type(await screen.findByLabelText("Reason (optional)"), "the disk");
    listed = [report, mail];
    await cache.invalidateQueries();
    await waitFor(() => expect(screen.queryByLabelText("Switch backup on or off")).toBeNull());
    expect(screen.getByLabelText<HTMLInputElement>("Reason (optional)").value).toBe("the disk");
  });

  it("keeps the row that the keys walked to, with the focus, and not its place", async () => {
    stubServer(answers);
    const { router, cache } = open();
    await screen.findByText("backup");
    await userEvent.keyboard("jj");
    await waitFor(() => expect(document.activeElement?.textContent).toBe("report"));
    listed = [mail, backup, report];
    await cache.invalidateQueries();
    await waitFor(() => expect(screen.getAllByRole("listitem")[0]?.textContent).toContain("mail"));
    expect(document.activeElement?.textContent).toBe("report");
    await userEvent.keyboard("x");
    expect(screen.getByLabelText<HTMLInputElement>("Select report").checked).toBe(true);
    await userEvent.keyboard("k");
    await waitFor(() => expect(document.activeElement?.textContent).toBe("backup"));
    await userEvent.keyboard("o");
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/backup"));
  });

  it("goes on with the neighbour when the row that the keys walked to is gone", async () => {
    stubServer(answers);
    const { cache } = open();
    await screen.findByText("backup");
    await userEvent.keyboard("jj");
    listed = [backup, mail];
    await cache.invalidateQueries();
    await waitFor(() => expect(screen.queryByText("report")).toBeNull());
    await userEvent.keyboard("j");
    await waitFor(() => expect(document.activeElement?.textContent).toBe("mail"));
  });

  it("is loaded again when something happens while an answer is on its way", async () => {
    let hear: LiveHandler = () => undefined;
    vi.spyOn(live(), "subscribe").mockImplementation((_topic, handler) => {
      hear = handler;
      return () => undefined;
    });
    const slow: ((answer: unknown) => void)[] = [];
    let isSlow = false;
    stubServer({
      ...answers,
      "GET /api/schedules": () => (isSlow ? new Promise((resolve) => slow.push(resolve)) : page(...listed)),
    });
    open();
    await screen.findByText("backup");
    isSlow = true;
    const event = { kind: "schedule_changed", at: "", run: null, schedule: "mail", session: null, data: {} } as const;
    const tell = () => hear({ type: "event", topic: "overview", event });
    tell();
    await waitFor(() => expect(slow).toHaveLength(1));
    const old = page(...listed);
    tell();
    // The pause of the second event ends while the first answer is still on its way.
    await new Promise((resolve) => setTimeout(resolve, 1100));
    listed = [backup];
    isSlow = false;
    slow[0]?.(old);
    await waitFor(() => expect(screen.queryByText("mail")).toBeNull());
  });
});
