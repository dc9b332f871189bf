import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Run } from "@/api/types";
import { renderPage } from "@/testing/render";
import { sampleRun } from "@/testing/samples";
import { type Asked, problem, stubServer } from "@/testing/server";
import { RunsPage } from "./RunsPage";
import { NO_FILTERS, filtersOf, queryOf } from "./runFilters";
import { PAGES_IN_A_ROW } from "./useLookBack";

beforeEach(() => {
  // happy-dom lays nothing out: the window has a height all the same.
  vi.spyOn(window, "innerHeight", "get").mockReturnValue(800);
});

const lists = {
  "GET /api/tasks": { items: [{ name: "mail", nodes: ["n1"], schedules: [], schedule_count: 0 }] },
  "GET /api/projects": { items: [] },
  "GET /api/lanes": { items: [] },
};
const open = (search = "") => renderPage(RunsPage, { route: "/runs", at: `/runs${search}` });

describe("the page of all runs", () => {
  it("finds part of a name, also where a page of what was looked through has none", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/runs": ({ query }: Asked) =>
        query.get("cursor") === null ? { items: [], next: "further" } : { items: [sampleRun({ schedule: "backup" })], next: null },
    });
    open("?q=back");
    expect(await screen.findByText("backup")).toBeTruthy();
    expect(asked.filter((each) => each.path === "/api/runs").map((each) => each.query.get("q"))).toEqual(["back", "back"]);
  });

  it("stops a search whose page fails, and goes on when it is told to", async () => {
    let broken = true;
    const asked = stubServer({
      ...lists,
      "GET /api/runs": ({ query }: Asked) => {
        if (query.get("cursor") === null) return { items: [], next: "further" };
        return broken ? problem(503, "the database is away") : { items: [sampleRun({ schedule: "backup" })], next: null };
      },
    });
    open("?q=back");
    expect(await screen.findByText("the database is away")).toBeTruthy();
    expect(asked.filter((each) => each.path === "/api/runs")).toHaveLength(2);
    broken = false;
    await userEvent.click(screen.getByRole("button", { name: /try again|retry/i }));
    expect(await screen.findByText("backup")).toBeTruthy();
  });

  it("looks back by itself for so many pages only", async () => {
    const asked = stubServer({
      ...lists,
      "GET /api/runs": ({ query }: Asked) => ({ items: [], next: String(Number(query.get("cursor") ?? "0") + 1) }),
    });
    const pages = () => asked.filter((each) => each.path === "/api/runs").length;
    open("?q=back");
    const further = await screen.findByRole("button", { name: "Look further back" });
    expect(pages()).toBe(PAGES_IN_A_ROW);
    await userEvent.click(further);
    await waitFor(() => expect(pages()).toBe(2 * PAGES_IN_A_ROW));
    expect(await screen.findByRole("button", { name: "Look further back" })).toBeTruthy();
  });

  it("shows what runs counted, and marks those that succeeded with errors", async () => {
    const totals = { copied: 1200, errors: 3 };
    const errors = sampleRun({ id: 12, state: "succeeded", cause: "errors", reason: "3 errors", totals });
    const failed = sampleRun({ id: 13, state: "failed", cause: "raised", reason: "no ink", totals: { copied: 1 } });
    stubServer({ ...lists, "GET /api/runs": { items: [failed, errors], next: null } });
    open();
    const row = (await screen.findByText("with errors")).closest("a");
    expect(row?.textContent).toContain("succeeded with errors");
    expect(within(row!).getByTitle("copied 1,200, errors 3")).toBeTruthy();
    expect(screen.getByTitle("no ink · copied 1")).toBeTruthy();
  });

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
    expect(await screen.findByText("ostinato schedule trigger NAME --db sqlite:////srv/jobs.db")).toBeTruthy();
    await screen.findByRole("option", { name: "mail" });
    await userEvent.selectOptions(screen.getByLabelText("Task"), "mail");
    await waitFor(() => expect(router.state.location.search).toEqual({ task: "mail" }));
    await waitFor(() => expect(asked.at(-1)?.query.get("task")).toBe("mail"));
    await userEvent.click(await screen.findByText("Clear filters"));
    await waitFor(() => expect(router.state.location.search).toEqual({}));
  });

  it("takes half a name of a schedule for one that has no runs, and not for an error", async () => {
    stubServer({ ...lists, "GET /api/runs": problem(404, "there is no schedule 'nigh'") });
    open("?schedule=nigh");
    expect(await screen.findByText("No run matches these filters")).toBeTruthy();
    expect(screen.queryByText("there is no schedule 'nigh'")).toBeNull();
  });

  it("leaves words that are no state, cause or trigger out of what it asks", () => {
    expect(queryOf(filtersOf({ state: "failed,expired,odd", cause: "timed_out", trigger: "cat", schedule: "a" }))).toEqual({
      limit: 50,
      state: ["failed", "expired"],
      cause: ["timed_out"],
      schedule: "a",
    });
    expect(queryOf(filtersOf({ cause: "odd" }))).toEqual({ limit: 50 });
    expect(queryOf(NO_FILTERS)).toEqual({ limit: 50 });
  });

  const pageOf = (newest: number, count: number) =>
    Array.from({ length: count }, (_, place) => sampleRun({ id: newest - place, state: "succeeded" }));
  /** Runs with these ids and down, in pages of three. */
  const ledger = (newest: () => number) => (asked: Asked) => {
    const cursor = asked.query.get("cursor");
    const from = cursor === null ? newest() : Number(cursor);
    return { items: pageOf(from, 3), next: from > 5 ? String(from - 3) : null };
  };
  const shownIds = () => screen.getAllByRole("listitem").map((item) => Number(/run (\d+)/.exec(item.textContent)?.[1]));

  it("asks for the first page only when something happens, and no run is lost or shown twice", async () => {
    let newest = 10;
    const asked = stubServer({ ...lists, "GET /api/runs": ledger(() => newest) });
    const { cache } = open();
    await waitFor(() => expect(shownIds()).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2]));
    const before = asked.length;
    newest = 12;
    await cache.invalidateQueries({ queryKey: ["runs", "list"] });
    await waitFor(() => expect(shownIds()).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]));
    expect(asked.slice(before).map((each) => each.query.get("cursor"))).toEqual([null]);
    // More than a page at once: everything is loaded anew.
    newest = 20;
    await cache.invalidateQueries({ queryKey: ["runs", "list"] });
    await waitFor(() => expect(shownIds().slice(0, 9)).toEqual([20, 19, 18, 17, 16, 15, 14, 13, 12]));
  });

  it("counts new runs while somebody reads further down, and shows them at the top", async () => {
    let newest = 10;
    stubServer({ ...lists, "GET /api/runs": ledger(() => newest) });
    const scrolled = vi.spyOn(window, "scrollY", "get").mockReturnValue(0);
    const { cache } = open();
    await waitFor(() => expect(shownIds()).toHaveLength(9));
    const scroll = (to: number) => {
      scrolled.mockReturnValue(to);
      fireEvent.scroll(window);
    };
    scroll(400);
    newest = 12;
    await cache.invalidateQueries({ queryKey: ["runs", "list"] });
    const button = await screen.findByText("2 new runs");
    expect(shownIds()[0]).toBe(10);
    vi.spyOn(window, "scrollTo").mockImplementation(() => scroll(0));
    await userEvent.click(button);
    await waitFor(() => expect(shownIds()[0]).toBe(12));
    expect(screen.queryByText("2 new runs")).toBeNull();
  });

  it("drops a run that has gone on to another state than the one that is asked for", async () => {
    stubServer({ ...lists, "GET /api/runs": { items: [sampleRun({ id: 7 }), sampleRun({ id: 6 })], next: null } });
    const { cache } = open("?state=running");
    await waitFor(() => expect(shownIds()).toEqual([7, 6]));
    const patch = (data: { pages: { items: Run[] }[] } | undefined) =>
      data && {
        ...data,
        pages: data.pages.map((page) => ({
          ...page,
          items: page.items.map((run) => (run.id === 7 ? { ...run, state: "succeeded" as const } : run)),
        })),
      };
    cache.setQueriesData({ queryKey: ["runs", "list"] }, patch);
    await waitFor(() => expect(shownIds()).toEqual([6]));
  });
});
