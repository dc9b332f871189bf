/** What the live stream tells goes into the query cache: a run is patched at once, lists are loaded anew, gently. */

import type { QueryClient, QueryKey } from "@tanstack/react-query";
import { keys } from "@/api/keys";
import type { LiveClient, LiveMessage } from "@/api/live";
import type { LiveEvent, LiveRun, Overview, Page, Run } from "@/api/types";

/** Events that come together are answered together, and however much happens, a list is loaded once in PAUSE. */
const GATHER = 120;
const PAUSE = 1000;
/** The timeline is hundreds of kilobytes, and a day of it looks the same for some seconds. */
const TIMELINE_PAUSE = 5000;

type Pages = { pages: Page<Run>[]; pageParams: unknown[] };

/** The newer of two tellings of a run: an answer that was on its way must not undo an event. */
function merged(run: Run, news: LiveRun): Run {
  // What a queued run waits for is only in an answer.
  const reason = news.reason ?? (news.state === "queued" && run.state === "queued" ? run.reason : null);
  return { ...run, ...news, reason };
}

/** What is running now, with the news; the rest of the overview comes with the next load. */
function withNews(overview: Overview, news: LiveRun): Overview {
  const running = overview.running
    .map((run) => (run.id === news.id ? merged(run, news) : run))
    .filter((run) => run.state === "running");
  const ended = overview.running.length - running.length;
  return { ...overview, running, counts: { ...overview.counts, running: overview.counts.running - ended } };
}

export class Feed {
  private readonly waiting = new Map<string, QueryKey>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private flushedAt = 0;
  private timelineAt = 0;

  constructor(private readonly cache: QueryClient) {}

  /** Follows the stream until the answer is called. */
  follow(client: LiveClient): () => void {
    const stops = [
      client.subscribe("overview", (message) => this.hear(message, client.isBehind)),
    ];
    return () => {
      clearTimeout(this.timer);
      this.timer = undefined;
      for (const stop of stops) stop();
    };
  }

  /** `isBehind`: something may have been loaded before the message came. */
  hear(message: LiveMessage, isBehind = true): void {
    if (message.type === "event") this.take(message.event);
    else if (message.type !== "subscribed") this.refresh(keys.overview, keys.schedules, keys.runs, keys.timeline, keys.lanes, keys.sessions, keys.incidents);
    else if (isBehind) this.catchUp();
  }

  /** What happened before the topic began, or in a break, was not told: whatever was asked for until now may be older. */
  private catchUp(): void {
    const first = this.cache.getQueryCache().findAll({ fetchStatus: "fetching", predicate: ({ state }) => state.data === undefined });
    void this.cache.invalidateQueries();
    // What has no answer yet is not begun anew by that.
    this.refresh(...first.map((query) => query.queryKey));
  }

  private take(event: LiveEvent): void {
    if (event.run !== null) this.patch(event.run);
    if (event.kind === "run_progress") return;
    if (event.kind.startsWith("incident_")) this.refresh(keys.incidents);
    if (event.kind === "incident_changed") return;
    // It takes its incidents with it.
    if (event.kind === "schedule_removed") this.refresh(keys.incidents);
    if (event.kind === "session_event") {
      this.refresh(keys.sessions);
      return;
    }
    this.refresh(keys.overview, [...keys.schedules, "list"], keys.timeline);
    if (event.schedule !== null) this.refresh(keys.schedule(event.schedule));
    // The patch has no attempts and no result: those of an open run are loaded with it, also of one that was queued
    // again and waits for its next attempt.
    if (event.run !== null) this.refresh([...keys.runs, "list"], keys.lanes, keys.run(event.run.id));
    if (event.session !== null) this.refresh(keys.sessions);
  }

  private patch(news: LiveRun): void {
    this.cache.setQueryData<Run>(keys.run(news.id), (run) => run && merged(run, news));
    this.cache.setQueryData<Overview>(keys.overview, (overview) => overview && withNews(overview, news));
    this.cache.setQueriesData<Pages>({ queryKey: [...keys.runs, "list"] }, (data) => {
      if (data === undefined || !data.pages.some((page) => page.items.some((run) => run.id === news.id))) return data;
      const pages = data.pages.map((page) => ({
        ...page,
        items: page.items.map((run) => (run.id === news.id ? merged(run, news) : run)),
      }));
      return { ...data, pages };
    });
  }

  private refresh(...wanted: QueryKey[]): void {
    for (const key of wanted) this.waiting.set(JSON.stringify(key), key);
    this.timer ??= setTimeout(() => this.flush(), Math.max(GATHER, this.flushedAt + PAUSE - Date.now()));
  }

  private mayLoadTimeline(): boolean {
    const isTime = Date.now() >= this.timelineAt + TIMELINE_PAUSE;
    if (isTime) this.timelineAt = Date.now();
    return isTime;
  }

  private flush(): void {
    this.timer = undefined;
    this.flushedAt = Date.now();
    for (const [name, queryKey] of [...this.waiting]) {
      // What is being loaded is not begun anew, or a slow list would never arrive: it is loaded again after that.
      if (this.cache.isFetching({ queryKey }) > 0) continue;
      if (queryKey[0] === keys.timeline[0] && !this.mayLoadTimeline()) continue;
      this.waiting.delete(name);
      void this.cache.invalidateQueries({ queryKey });
    }
    if (this.waiting.size > 0) this.refresh();
  }
}
