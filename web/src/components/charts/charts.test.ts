import { describe, expect, it } from "vitest";
import type { DueTime, RecentRun, RunState, TimelineRun, TimelineStretch } from "@/api/types";
import { tableEntries } from "./GanttTable";
import { type Piece, axisTicks, dueBars, ganttRows, piecesOf, rowBars, runStretch, stackPieces } from "./gantt";
import { barTitle, tickText } from "./ganttText";
import { LEFT, daySummary, heatMapGrid, heatMapLayout, historySummary } from "./heatmap";
import { barAt, barHeights, sparklineBars, sparklineSummary, statePaths } from "./sparkline";
import { zoneOffset } from "./zoneOffset";

const run = (id: number, seconds: number | null, state: RunState = "succeeded"): RecentRun => ({
  id,
  state,
  seconds,
  at: "2026-11-16T00:00:00Z",
});

describe("sparkline", () => {
  it("draws longer runs higher, and what was not executed lowest", () => {
    const [none = 0, short = 0, long = 0] = barHeights([run(1, null, "missed"), run(2, 1), run(3, 600)]);
    expect(none).toBeLessThanOrEqual(short);
    expect(short).toBeLessThan(long);
    expect(long).toBe(1);
  });

  it("draws runs of about the same time alike", () => {
    expect(new Set(barHeights([run(1, 5), run(2, 5.05), run(3, 5.1)])).size).toBe(1);
  });

  it("puts the newest at the right edge and shows the last 60 only", () => {
    const bars = sparklineBars(
      Array.from({ length: 70 }, (_, index) => run(index, index)),
      60,
      3,
      20,
    );
    expect(bars).toHaveLength(60);
    expect(bars.at(-1)).toMatchObject({ x: 177, run: { id: 69 } });
    expect(sparklineBars([run(1, 1)], 60, 3, 20)[0]?.x).toBe(177);
  });

  it("finds the run below the pointer, and draws each state as one shape", () => {
    const bars = sparklineBars([run(1, 1), run(2, 1, "failed"), run(3, 1)], 60, 3, 20);
    expect(barAt(bars, 0.999, 60)?.run.id).toBe(3);
    expect(barAt(bars, 57.5 / 60, 60)?.run.id).toBe(1);
    expect(barAt(bars, 0.1, 60)).toBeNull();
    expect(statePaths(bars, 2)).toEqual([
      { state: "succeeded", path: "M171 7h2v10h-2zM177 7h2v10h-2z" },
      { state: "failed", path: "M174 7h2v13h-2z" },
    ]);
  });

  it("lets what failed hang below the line, so that it is seen without its colour", () => {
    const states: RunState[] = ["succeeded", "failed", "missed", "cancelled", "running"];
    const bars = sparklineBars(states.map((state, index) => run(index, 1, state)), 60, 3, 20);
    expect(bars.filter((bar) => bar.y + bar.height === 20).map((bar) => bar.run.state)).toEqual(["failed"]);
    expect(new Set(bars.filter((bar) => bar.run.state !== "failed").map((bar) => bar.y + bar.height)).size).toBe(1);
  });

  it("says the same in words", () => {
    expect(sparklineSummary([run(1, 1), run(2, 1), run(3, 1, "failed")])).toBe("Last 3 runs: 2 succeeded, 1 failed.");
    expect(sparklineSummary([])).toBe("No runs yet.");
  });
});

describe("runs that succeeded with errors", () => {
  const errors = (id: number): RecentRun => ({ ...run(id, 1), cause: "errors" });

  it("have a colour of their own, and a dot below the line", () => {
    const paths = statePaths(sparklineBars([run(1, 1), errors(2)], 60, 3, 20), 2);
    expect(paths).toEqual([
      { state: "succeeded", path: "M174 7h2v10h-2z" },
      { state: "errors", path: "M177 7h2v10h-2zM177 18h2v2h-2z" },
    ]);
  });

  it("are told apart in words", () => {
    expect(sparklineSummary([run(1, 1), errors(2), errors(3)])).toBe(
      "Last 3 runs: 2 succeeded with errors, 1 succeeded.",
    );
  });
});

describe("heat map", () => {
  const day = (date: string, states: Record<string, number>, with_errors = 0) => ({
    date,
    states,
    with_errors,
    seconds: 1,
  });

  it("ends with today and begins on a Monday", () => {
    const grid = heatMapGrid([], "2026-11-18");
    expect(grid.days.at(-1)).toMatchObject({ date: "2026-11-18", weekday: 2, week: 25 });
    expect(grid.days[0]).toMatchObject({ date: "2026-05-25", weekday: 0, week: 0 });
    expect(grid.months.map((month) => month.label)).toEqual(["Jun", "Jul", "Aug", "Sep", "Oct", "Nov"]);
  });

  it("is red when something failed, as strong as the share that failed", () => {
    const grid = heatMapGrid(
      [
        day("2026-11-16", { succeeded: 9, failed: 1 }),
        day("2026-11-15", { failed: 2 }),
        day("2026-11-14", { skipped: 1 }),
      ],
      "2026-11-16",
    );
    const [idle, all, some] = grid.days.slice(-3);
    expect(some).toMatchObject({ tone: "bad", level: 1 });
    expect(all).toMatchObject({ tone: "bad", level: 4 });
    expect(idle).toMatchObject({ tone: "idle" });
  });

  it("is amber when something had errors and nothing failed, as strong as the share that did", () => {
    const days = [
      day("2026-11-16", { succeeded: 10 }, 1),
      day("2026-11-15", { succeeded: 2 }, 2),
      day("2026-11-14", { succeeded: 3, failed: 1 }, 3),
    ];
    const grid = heatMapGrid(days, "2026-11-16");
    const [failed, all, some] = grid.days.slice(-3);
    expect([some?.tone, some?.level]).toEqual(["warn", 1]);
    expect([all?.tone, all?.level]).toEqual(["warn", 4]);
    expect([failed?.tone, failed?.level]).toEqual(["bad", 1]);
    expect(daySummary(some!)).toBe("Mon 16 Nov 2026: 10 runs, 9 succeeded, 1 succeeded with errors");
    expect(daySummary(all!)).toBe("Sun 15 Nov 2026: 2 runs, 2 succeeded with errors");
    expect(historySummary(days)).toBe(
      "16 runs on 3 days; something failed on 1 day, something had errors on 3 days.",
    );
  });

  it("draws fewer weeks where there is little room, and hangs over no edge", () => {
    expect(heatMapLayout(600, 26)).toEqual({ weeks: 26, pitch: 19 });
    expect(heatMapLayout(300, 26)).toEqual({ weeks: 26, pitch: 10 });
    const { weeks, pitch } = heatMapLayout(254, 26);
    expect(LEFT + weeks * pitch).toBeLessThanOrEqual(254);
    expect([weeks, pitch]).toEqual([22, 10]);
    expect(heatMapLayout(0, 26).weeks).toBe(26);
  });

  it("says what a day and the whole hold", () => {
    const history = [day("2026-11-16", { succeeded: 9, failed: 1 })];
    expect(daySummary(heatMapGrid(history, "2026-11-16").days.at(-1)!)).toBe(
      "Mon 16 Nov 2026: 10 runs, 9 succeeded, 1 failed",
    );
    expect(historySummary(history)).toBe("10 runs on 1 day; something failed on 1 day.");
  });
});

describe("timeline", () => {
  const scale = { from: Date.parse("2026-11-16T00:00:00Z"), span: 3_600_000, width: 3600 };
  const timelineRun = (changes: Partial<TimelineRun>): TimelineRun => ({
    id: 1,
    schedule: "a",
    task: null,
    state: "succeeded",
    cause: null,
    trigger: "schedule",
    due_at: "2026-11-16T00:10:00Z",
    last_due_at: null,
    count: 1,
    started_at: "2026-11-16T00:10:00Z",
    finished_at: "2026-11-16T00:11:00Z",
    lane: "cron",
    node: null,
    ...changes,
  });
  const now = Date.parse("2026-11-16T00:30:00Z");
  const rowsOf = (runs: TimelineRun[], due: DueTime[]) => ganttRows({ runs, due, stretches: [], due_stretches: [] });
  const listed = (runs: TimelineRun[]) => piecesOf({ runs, stretches: [] }, now);
  const stackRuns = (runs: TimelineRun[]) => stackPieces(listed(runs), 1000);

  it("has one row for each schedule, then the tasks without one", () => {
    const rows = rowsOf(
      [timelineRun({ schedule: null, task: "mail" }), timelineRun({ schedule: "b" })],
      [{ schedule: "a", at: "2026-11-16T00:40:00Z", zone: "UTC" }],
    );
    expect(rows.map((row) => [row.name, row.loose])).toEqual([
      ["a", false],
      ["b", false],
      ["mail", true],
    ]);
  });

  it("ends a running bar now and stretches missed ones over their due times", () => {
    expect(runStretch(timelineRun({ state: "running", finished_at: null }), now)[1]).toBe(now);
    const missed = timelineRun({
      state: "missed",
      started_at: null,
      finished_at: null,
      last_due_at: "2026-11-16T00:20:00Z",
      count: 11,
    });
    const [bar] = rowBars([listed([missed])], scale);
    expect(bar).toMatchObject({ kind: "missed", left: 600, width: 600, count: 11 });
  });

  it("joins small bars that touch, and a failure among them shows", () => {
    const short = (id: number, second: number, state: RunState) =>
      timelineRun({
        id,
        state,
        started_at: `2026-11-16T00:10:0${second}Z`,
        finished_at: `2026-11-16T00:10:0${second}Z`,
      });
    const runs = [short(1, 0, "succeeded"), short(2, 2, "failed"), short(3, 4, "succeeded")];
    const bars = rowBars(stackRuns(runs), scale);
    expect(bars).toHaveLength(1);
    expect(bars[0]).toMatchObject({ state: "succeeded", marks: [{ state: "failed", left: 2, width: 3 }], count: 3 });
  });

  const during = (id: number, from: string, until: string, state: RunState = "succeeded") =>
    timelineRun({ id, state, started_at: `2026-11-16T00:${from}Z`, finished_at: `2026-11-16T00:${until}Z` });
  const ids = (stack: Piece[][]) => stack.map((pieces) => pieces.map((one) => one.run));

  it("puts runs that overlap below each other, and goes on above when there is room again", () => {
    const runs = [
      during(3, "12:00", "13:00"),
      during(1, "10:00", "20:00"),
      during(2, "11:00", "15:00"),
      during(4, "14:00", "16:00"),
      during(5, "20:00", "21:00"),
    ];
    const stack = stackRuns(runs);
    expect(ids(stack)).toEqual([[1, 5], [2], [3, 4]]);
    const bars = rowBars(stack, scale);
    expect(bars.map((bar) => [bar.pieces[0]?.run, bar.level])).toEqual([
      [1, 0],
      [2, 1],
      [3, 2],
      [4, 2],
      [5, 0],
    ]);
  });

  it("needs no sub-row for what overlaps less than can be seen", () => {
    const runs = [during(1, "10:00", "12:00"), during(2, "11:58", "14:00")];
    expect(ids(stackRuns(runs))).toEqual([[1, 2]]);
    expect(rowBars([listed(runs)], scale)).toHaveLength(2);
  });

  it("has at most four sub-rows; in the last, what overlaps is one bar that tells of all", () => {
    const runs = [1, 2, 3, 4, 5, 6].map((id) => during(id, `1${id}:00`, "25:00", id === 6 ? "failed" : "succeeded"));
    const stack = stackRuns(runs);
    expect(ids(stack)).toEqual([[1], [2], [3], [4, 5, 6]]);
    const last = rowBars(stack, scale).at(-1);
    expect(last).toMatchObject({ level: 3, count: 3, state: "succeeded", marks: [{ state: "failed" }] });
  });

  it("is a table of runs, the latest first, and of what is due, the soonest first", () => {
    const rows = rowsOf(
      [
        timelineRun({ id: 1 }),
        timelineRun({ id: 2, started_at: "2026-11-16T00:20:00Z", finished_at: "2026-11-16T00:21:00Z" }),
      ],
      [
        { schedule: "a", at: "2026-11-16T00:50:00Z", zone: "UTC" },
        { schedule: "a", at: "2026-11-16T00:40:00Z", zone: "UTC" },
      ],
    );
    const told = tableEntries(rows, scale.from, scale.span, now).map(
      (entry) => entry.run ?? new Date(entry.at).getUTCMinutes(),
    );
    expect(told).toEqual([2, 1, 40, 50]);
  });

  it("leaves out what is outside the window", () => {
    const outside = timelineRun({ started_at: "2026-11-15T22:00:00Z", finished_at: "2026-11-15T22:01:00Z" });
    expect(rowBars([listed([outside])], scale)).toEqual([]);
    expect(dueBars({ due: [scale.from - 1, scale.from + 60_000, scale.from + 61_000], dueStretches: [] }, scale)).toMatchObject([
      { count: 2, kind: "due" },
    ]);
  });

  const stretch = (state: RunState, from: string, to: string, runs: number, only: number | null = null): TimelineStretch => ({
    schedule: "a",
    task: null,
    state,
    with_errors: false,
    from: `2026-11-16T00:${from}Z`,
    to: `2026-11-16T00:${to}Z`,
    runs,
    due_times: runs,
    run: only,
  });

  it("draws what was only counted from its start to its end, with every failure on top", () => {
    const stretches = [stretch("succeeded", "00:00", "20:00", 2400), stretch("failed", "10:00", "10:01", 1, 9)];
    const bars = rowBars(stackPieces(piecesOf({ runs: [], stretches }, now), 1000), scale);
    expect(bars).toMatchObject([
      { left: 0, width: 1200, level: 0, state: "succeeded", marks: [{ state: "failed", left: 600, width: 3 }] },
    ]);
    expect(barTitle(bars[0]!)).toBe("2,400 succeeded, 1 failed");
  });

  it("shows each state at its own place and as wide as it was, with failures on top", () => {
    const marksOf = (...stretches: TimelineStretch[]) =>
      rowBars(stackPieces(piecesOf({ runs: [], stretches }, now), 1000), scale).map(({ state, marks }) => ({ state, marks }));
    const all = stretch("succeeded", "00:00", "20:00", 2400);
    expect(marksOf(all, stretch("skipped", "01:40", "02:00", 2), stretch("failed", "01:50", "11:40", 800))).toEqual([
      {
        state: "succeeded",
        marks: [
          { state: "skipped", left: 100, width: 20 },
          { state: "failed", left: 110, width: 590 },
        ],
      },
    ]);
    expect(marksOf(all, stretch("failed", "06:40", "06:42", 1), stretch("skipped", "01:40", "11:40", 300))).toEqual([
      {
        state: "succeeded",
        marks: [
          { state: "skipped", left: 100, width: 600 },
          { state: "failed", left: 400, width: 3 },
        ],
      },
    ]);
    // Most of them failed: what was skipped among them does not hide it.
    expect(marksOf(stretch("skipped", "01:40", "11:40", 300), stretch("failed", "06:40", "08:20", 500))).toEqual([
      {
        state: "failed",
        marks: [
          { state: "skipped", left: 0, width: 600 },
          { state: "failed", left: 300, width: 100 },
        ],
      },
    ]);
    expect(marksOf(all, stretch("failed", "01:40", "03:20", 9), stretch("failed", "02:30", "05:00", 9))).toEqual([
      { state: "succeeded", marks: [{ state: "failed", left: 100, width: 200 }] },
    ]);
  });

  it("leads to the only run of a stretch, and says of many that they are many", () => {
    const stretches = [stretch("failed", "10:00", "10:01", 1, 9), stretch("skipped", "20:00", "29:00", 12)];
    const bars = rowBars(stackPieces(piecesOf({ runs: [], stretches }, now), 1000), scale);
    expect(bars.map(barTitle)).toEqual(["failed", "12 skipped"]);
    const [row] = ganttRows({ runs: [], due: [], stretches, due_stretches: [] });
    const told = tableEntries([row!], scale.from, scale.span, now);
    expect(told.map(({ state, run, count, until, seconds }) => ({ state, run, count, until, seconds }))).toEqual([
      { state: "skipped", run: null, count: 12, until: Date.parse("2026-11-16T00:29:00Z"), seconds: null },
      { state: "failed", run: 9, count: 1, until: null, seconds: 1 },
    ]);
  });

  it("draws due times that were only counted as a stretch to their end", () => {
    const dueStretches = [
      { schedule: "a", zone: "UTC", from: "2026-11-16T00:40:00Z", to: "2026-11-16T02:00:00Z", count: 300 },
    ];
    expect(dueBars({ due: [Date.parse("2026-11-16T00:39:59Z")], dueStretches }, scale)).toMatchObject([
      { kind: "due", left: 2399, width: 1201, count: 301 },
    ]);
  });

  it("puts ticks on round times of the wall clock", () => {
    const ticks = axisTicks({ from: Date.parse("2026-11-16T00:05:00Z"), span: 86_400_000, width: 800 }, () => 1_800_000);
    expect(new Date(ticks[0]!).toISOString()).toBe("2026-11-16T02:30:00.000Z");
    expect((ticks[1]! - ticks[0]!) / 3_600_000).toBe(3);
  });

  it("keeps ticks at midnight, with their dates, over the night when clocks are put back or forward", () => {
    const texts = (from: string, zone: string) => {
      const week = { from: Date.parse(from), span: 604_800_000, width: 700 };
      return axisTicks(week, (moment) => zoneOffset(zone, moment)).map((tick) => tickText(tick, zone));
    };
    const autumn = texts("2026-10-21T22:00:00Z", "Europe/Berlin");
    expect(autumn).toEqual(["22 Oct", "23 Oct", "24 Oct", "25 Oct", "26 Oct", "27 Oct", "28 Oct"]);
    const spring = texts("2026-03-26T12:00:00Z", "Europe/Berlin");
    expect(spring).toEqual(["27 Mar", "28 Mar", "29 Mar", "30 Mar", "31 Mar", "1 Apr", "2 Apr"]);
    // In Cairo the day of the change begins at 01:00.
    expect(texts("2026-04-22T12:00:00Z", "Africa/Cairo").slice(0, 3)).toEqual(["23 Apr", "24 Apr", "25 Apr"]);
  });

  it("leaves out an hour that the clock skips", () => {
    const night = { from: Date.parse("2026-03-28T23:00:00Z"), span: 4 * 3_600_000, width: 400 };
    const ticks = axisTicks(night, (moment) => zoneOffset("Europe/Berlin", moment));
    expect(ticks.map((tick) => tickText(tick, "Europe/Berlin"))).toEqual(["29 Mar", "01:00", "03:00", "04:00", "05:00"]);
  });
});
