import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { renderPage } from "@/testing/render";
import { sampleRun } from "@/testing/samples";
import { stubServer } from "@/testing/server";
import { RunsPage } from "./RunsPage";
import { NO_FILTERS, filtersOf, queryOf } from "./runFilters";

beforeEach(() => {
  // happy-dom lays nothing out: the window has a height all the same.
  vi.spyOn(window, "innerHeight", "get").mockReturnValue(800);
});

const lists = {
  "GET /api/tasks": { items: [{ name: "mail", nodes: ["n1"], schedules: 0 }] },
  "GET /api/projects": { items: [] },
  "GET /api/lanes": { items: [] },
};
const open = (search = "") => renderPage(RunsPage, { route: "/runs", at: `/runs${search}` });

describe("the page of all runs", () => {
  it("asks for what the address says, and shows each run with a link to it", async () => {
    const failed = sampleRun({ id: 12, state: "failed", reason: "exit code 3", finished_at: "2026-11-16T10:00:05Z" });
    const task = sampleRun({ id: 11, schedule: null, task: "mail", state: "failed", trigger: "catch_up" });
    const asked = stubServer({ ...lists, "GET /api/runs": { items: [failed, task], next: null } });
    open("?state=failed&lane=cron");
    const list = await screen.findByRole("list", { name: "Runs" });
    const [first, second] = await within(list).findAllByRole("link");
    expect(first?.getAttribute("href")).toBe("/runs/12");
    expect(first?.textContent).toMatch(/nightly.*run 12.*failed.*4 s.*schedule.*exit code 3/);
    expect(second?.textContent).toMatch(/mail.*run 11.*catch-up/);
    const query = asked.find((one) => one.path === "/api/runs")?.query;
    expect(query?.getAll("state")).toEqual(["failed"]);
    expect(query?.get("lane")).toBe("cron");
  });

  it("puts a filter into the address, and offers to clear those that nothing fits", async () => {
    const asked = stubServer({ ...lists, "GET /api/runs": { items: [], next: null } });
    const { router } = open();
    expect(await screen.findByText("ostinato schedule trigger NAME")).toBeTruthy();
    await screen.findByRole("option", { name: "mail" });
    await userEvent.selectOptions(screen.getByLabelText("Task"), "mail");
    await waitFor(() => expect(router.state.location.search).toEqual({ task: "mail" }));
    await waitFor(() => expect(asked.at(-1)?.query.get("task")).toBe("mail"));
    await userEvent.click(await screen.findByText("Clear the filters"));
    await waitFor(() => expect(router.state.location.search).toEqual({}));
  });

  it("leaves words that are no state or trigger out of what it asks", () => {
    expect(queryOf(filtersOf({ state: "failed,expired,odd", trigger: "cat", schedule: "a" }))).toEqual({
      limit: 50,
      state: ["failed", "expired"],
      schedule: "a",
    });
    expect(queryOf(NO_FILTERS)).toEqual({ limit: 50 });
  });
});
