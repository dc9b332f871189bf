import { describe, expect, it } from "vitest";
import { filtersOf, isFiltered, queryOf, searchOf, sortAfterClick } from "./filters";

describe("filters in the URL", () => {
  it("come back from the URL as they were", () => {
    const filters = { project: "site", state: "broken", owner: "ada", q: "back up", sort: "-last" };
    expect(filtersOf(searchOf(filters))).toEqual(filters);
  });

  it("know the order by the last failure", () => {
    expect(queryOf(filtersOf({ sort: "-failed" })).sort).toBe("-failed");
  });

  it("leave out what is the default", () => {
    expect(searchOf({ q: "", sort: "next", state: "off" })).toEqual({ q: undefined, sort: undefined, state: "off" });
    expect(isFiltered(filtersOf({ sort: "name" }))).toBe(false);
    expect(isFiltered(filtersOf({ q: "x" }))).toBe(true);
  });

  it("drop words that the server would refuse", () => {
    expect(filtersOf({ state: "nonsense", sort: "colour" })).toMatchObject({ state: "", sort: "next" });
  });

  it("ask the server for large pages with the last 60 runs", () => {
    expect(queryOf(filtersOf({ q: " x ", project: "site" }))).toEqual({
      q: "x",
      project: "site",
      sort: "next",
      recent: 60,
      limit: 200,
    });
  });

  it("turn the order round at the second click", () => {
    expect(sortAfterClick("next", "name")).toBe("name");
    expect(sortAfterClick("name", "name")).toBe("-name");
    expect(sortAfterClick("name", "last")).toBe("-last");
    expect(sortAfterClick("-last", "last")).toBe("last");
  });
});
