import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { Feed } from "@/api/feed";
import { keys } from "@/api/keys";
import type { LiveEvent, LiveRun, Overview, Run } from "@/api/types";

const run = (changes: Partial<Run>): Run =>
  ({ id: 7, schedule: "nightly", state: "running", attempts: [], ...changes }) as Run;

const event = (kind: LiveEvent["kind"], changes: Partial<Run> = {}): LiveEvent => ({
  kind,
  at: "2026-11-16T12:00:00Z",
  run: run(changes) as LiveRun,
  schedule: "nightly",
  session: null,
  data: {},
});

let cache: QueryClient;
let feed: Feed;

beforeEach(() => {
  vi.useFakeTimers();
  cache = new QueryClient();
  feed = new Feed(cache);
});

const tell = (told: LiveEvent): void => feed.hear({ type: "event", topic: "overview", event: told });

it("an event changes the run in the cache at once, wherever it is shown", () => {
  cache.setQueryData(keys.run(7), run({ result: "kept" }));
  cache.setQueryData([...keys.runs, "list", {}], {
    pages: [{ items: [run({}), run({ id: 8 })], next: null }],
    pageParams: [],
  });
  tell(event("run_progress", { progress: { done: 1, total: 4, text: "" } }));
  expect(cache.getQueryData<Run>(keys.run(7))).toMatchObject({ progress: { done: 1 }, result: "kept" });
  const list = cache.getQueryData<{ pages: { items: Run[] }[] }>([...keys.runs, "list", {}]);
  expect(list?.pages[0]?.items.map((one) => one.progress?.done)).toEqual([1, undefined]);
});

it("a run that has ended leaves what is running now", () => {
  cache.setQueryData(keys.overview, { running: [run({}), run({ id: 8 })], counts: { running: 2 } });
  tell(event("run_finished", { state: "succeeded" }));
  const overview = cache.getQueryData<Overview>(keys.overview);
  expect([overview?.running.map((one) => one.id), overview?.counts.running]).toEqual([[8], 1]);
});

it("a flood of events loads a list at most once a second", () => {
  const loaded = vi.spyOn(cache, "invalidateQueries");
  const overviews = () => loaded.mock.calls.filter(([filters]) => filters?.queryKey?.[0] === "overview").length;
  for (let number = 0; number < 300; number += 1) {
    tell(event("run_finished", { id: number, state: "succeeded" }));
    vi.advanceTimersByTime(10);
  }
  vi.advanceTimersByTime(2000);
  expect(overviews()).toBeGreaterThanOrEqual(3);
  expect(overviews()).toBeLessThanOrEqual(5);
});

it("a flood of events loads the timeline at most every five seconds, and once more when it is over", () => {
  const loaded = vi.spyOn(cache, "invalidateQueries");
  const timelines = () => loaded.mock.calls.filter(([filters]) => filters?.queryKey?.[0] === "timeline").length;
  for (let number = 0; number < 200; number += 1) {
    tell(event("run_finished", { id: number, state: "succeeded" }));
    vi.advanceTimersByTime(50);
  }
  expect(timelines()).toBeLessThanOrEqual(3);
  const during = timelines();
  vi.advanceTimersByTime(10_000);
  expect(timelines()).toBe(during + 1);
});

it("what becomes of an incident loads the incidents anew", () => {
  const loaded = vi.spyOn(cache, "invalidateQueries");
  const loadedBy = (kind: LiveEvent["kind"]) => {
    loaded.mockClear();
    tell({ ...event(kind), run: null });
    vi.advanceTimersByTime(5000);
    return loaded.mock.calls.map(([filters]) => filters?.queryKey);
  };
  expect(loadedBy("incident_changed")).toEqual([keys.incidents]);
  // No other event tells that a schedule is late, or no longer.
  for (const kind of ["incident_opened", "incident_closed"] as const) {
    const keysOf = loadedBy(kind);
    for (const key of [keys.incidents, keys.overview, keys.schedule("nightly")]) expect(keysOf).toContainEqual(key);
  }
});

it("the end of a run says nothing of incidents: they have their own events", () => {
  const loaded = vi.spyOn(cache, "invalidateQueries");
  tell(event("run_finished", { state: "failed" }));
  vi.advanceTimersByTime(5000);
  expect(loaded.mock.calls.map(([filters]) => filters?.queryKey)).not.toContainEqual(keys.incidents);
});

it("progress alone loads nothing anew", () => {
  const loaded = vi.spyOn(cache, "invalidateQueries");
  tell(event("run_progress"));
  vi.advanceTimersByTime(5000);
  expect(loaded).not.toHaveBeenCalled();
});

it("a run that is queued again after a failed attempt is loaded with that attempt", async () => {
  const load = vi.fn(async () => run({ state: "queued" }));
  const watching = new QueryObserver(cache, { queryKey: keys.run(7), queryFn: load }).subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(100);
  tell(event("run_queued", { state: "queued" }));
  await vi.advanceTimersByTimeAsync(2000);
  expect(load).toHaveBeenCalledTimes(2);
  watching();
});

it("a list that is being loaded is loaded again after that, and not begun anew", async () => {
  let answer = (): void => undefined;
  const load = vi.fn(() => new Promise<number>((resolve) => (answer = () => resolve(1))));
  const watching = new QueryObserver(cache, { queryKey: keys.overview, queryFn: load }).subscribe(() => undefined);
  tell(event("run_finished", { state: "succeeded" }));
  await vi.advanceTimersByTimeAsync(5000);
  expect(load).toHaveBeenCalledTimes(1);
  answer();
  await vi.advanceTimersByTimeAsync(2000);
  expect(load).toHaveBeenCalledTimes(2);
  answer();
  await vi.advanceTimersByTimeAsync(5000);
  expect(load).toHaveBeenCalledTimes(2);
  watching();
});

describe("a change between the load of a list and the beginning of the stream", () => {
  let stored: number;
  let answers: (() => void)[];
  const watch = () =>
    new QueryObserver<number>(cache, {
      queryKey: keys.overview,
      queryFn: () => {
        const read = stored;
        return new Promise((resolve) => answers.push(() => resolve(read)));
      },
    }).subscribe(() => undefined);
  const answer = async () => {
    for (const each of answers.splice(0)) each();
    await vi.advanceTimersByTimeAsync(5000);
  };

  beforeEach(() => {
    stored = 1;
    answers = [];
  });

  it("is seen, where the list had come", async () => {
    watch();
    await answer();
    stored = 2;
    feed.hear({ type: "subscribed", topic: "overview" });
    await answer();
    expect(cache.getQueryData(keys.overview)).toBe(2);
  });

  it("is seen, where the list was still on its way", async () => {
    watch();
    stored = 2;
    feed.hear({ type: "subscribed", topic: "overview" });
    await answer();
    await answer();
    expect(cache.getQueryData(keys.overview)).toBe(2);
  });

  it("cannot be, where the list waits for the stream: it is loaded once", async () => {
    watch();
    feed.hear({ type: "subscribed", topic: "overview" }, false);
    expect(answers).toHaveLength(1);
    await answer();
    expect(answers).toHaveLength(0);
  });
});
