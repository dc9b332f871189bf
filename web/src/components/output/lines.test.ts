import { describe, expect, it } from "vitest";
import { followAfterScroll, isAtEnd } from "./follow";
import { LineStore } from "./lines";
import { findMatches, firstMatchFrom, matchText, stepMatch } from "./search";

const line = (number: number | null, text: string) => ({ number, at: null, line: text });

describe("LineStore", () => {
  it("keeps each line once when a stream begins again", () => {
    const store = new LineStore();
    expect(store.add([line(1, "a"), line(2, "b")])).toBe(true);
    expect(store.add([line(2, "b"), line(3, "c")])).toBe(true);
    expect(store.add([line(3, "c")])).toBe(false);
    expect(store.allText()).toBe("a\nb\nc");
    expect(store.lastNumber).toBe(3);
  });

  it("shows where output was cut, once", () => {
    const store = new LineStore();
    store.add([line(1, "head"), line(null, "… 10 bytes cut …"), line(40, "tail")]);
    store.add([line(1, "head"), line(null, "… 10 bytes cut …"), line(40, "tail")]);
    expect(store.allText()).toBe("head\n… 10 bytes cut …\ntail");
  });

  it("shows both ends of a line that was cut in its middle, once", () => {
    const store = new LineStore();
    const cut = [line(1, "a"), line(2, "begins"), line(null, "… 700 bytes cut …"), line(2, "ends"), line(3, "z")];
    expect(store.add(cut)).toBe(true);
    expect(store.add(cut)).toBe(false);
    store.add([line(4, "more")]);
    expect(store.allText()).toBe("a\nbegins\n… 700 bytes cut …\nends\nz\nmore");
    expect(store.extent).toEqual({ printed: 4, kept: 4 });
  });

  it("knows with which line an attempt begins, also behind a cut, and says nothing without times", () => {
    const store = new LineStore();
    const stamped = (number: number, second: number) => ({ number, at: `2026-11-16T10:00:0${second}Z`, line: "" });
    store.add([stamped(1, 1), stamped(2, 2), stamped(3, 5), line(null, "… 9 lines were cut …"), stamped(13, 8)]);
    const starts = [0, 4, 7].map((second) => Date.parse(`2026-11-16T10:00:0${second}Z`));
    expect([0, 1, 2, 3, 4].map((index) => store.attemptAt(index, starts))).toEqual([null, null, 2, null, 3]);
    const plain = new LineStore();
    plain.add([line(1, "a"), line(2, "b")]);
    expect(plain.attemptAt(1, starts)).toBeNull();
  });

  it("gives a line the colour that an earlier line switched on", () => {
    const store = new LineStore();
    store.add([line(1, "\x1b[31mred"), line(2, "still red"), line(3, "\x1b[0mplain")]);
    expect(store.pieces(1).pieces[0]?.style.foreground).toBe(1);
    expect(store.pieces(2).pieces[0]?.style.foreground).toBe(null);
  });
});

describe("search", () => {
  const lines = ["one Error", "two", "error and ERROR"];
  const matches = findMatches(lines.length, (index) => lines[index] ?? "", "error");

  it("finds every place regardless of case", () => {
    expect(matches.hits).toEqual([
      { line: 0, start: 4, end: 9 },
      { line: 2, start: 0, end: 5 },
      { line: 2, start: 10, end: 15 },
    ]);
    expect(findMatches(3, (index) => lines[index] ?? "", "").hits).toEqual([]);
  });

  it("walks round the ends and begins where somebody reads", () => {
    expect(stepMatch(2, 3, 1)).toBe(0);
    expect(stepMatch(0, 3, -1)).toBe(2);
    expect(stepMatch(-1, 0, 1)).toBe(-1);
    expect(firstMatchFrom(matches.hits, 1)).toBe(1);
    expect(firstMatchFrom(matches.hits, 9)).toBe(0);
    expect(matchText(1, matches)).toBe("2 of 3");
    expect(matchText(-1, { hits: [], more: false })).toBe("no matches");
  });

  it("stays quick on 100,000 lines and stops at 10,000 hits", () => {
    const found = findMatches(100_000, (index) => `line ${index} of a long output`, "long");
    expect(found.hits).toHaveLength(10_000);
    expect(matchText(0, found)).toBe("1 of 10,000+");
  });
});

describe("follow", () => {
  it("lets go when somebody scrolls up and holds on at the end", () => {
    expect(followAfterScroll(true, 900, { top: 600, viewHeight: 100, fullHeight: 1000 })).toBe(false);
    expect(followAfterScroll(false, 600, { top: 700, viewHeight: 100, fullHeight: 1000 })).toBe(false);
    expect(followAfterScroll(false, 600, { top: 895, viewHeight: 100, fullHeight: 1000 })).toBe(true);
  });

  it("goes on when only the content has grown", () => {
    expect(followAfterScroll(true, 900, { top: 900, viewHeight: 100, fullHeight: 4000 })).toBe(true);
    expect(isAtEnd({ top: 900, viewHeight: 100, fullHeight: 1000 })).toBe(true);
  });
});
