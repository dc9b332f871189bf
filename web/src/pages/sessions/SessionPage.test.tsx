import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LiveClient, setLiveClient } from "@/api/live";
import type { Run, Session } from "@/api/types";
import { SessionPage } from "@/pages/sessions/SessionPage";
import { renderPage } from "@/testing/render";
import { sampleAgent, sampleRun, sampleSession } from "@/testing/samples";
import { type Answer, ME, problem, stubServer } from "@/testing/server";

const KEY = "dm:42/a";
const AT = "/api/sessions/dm%3A42%2Fa";

const agentRun = (id: number, prompt: string, changes: Partial<Run> = {}): Run =>
  sampleRun({
    id,
    schedule: null,
    trigger: "message",
    session: KEY,
    state: "succeeded",
    finished_at: "2026-11-16T10:00:04Z",
    work: sampleAgent({ prompt, context: `session:${KEY}`, model: "opus" }),
    ...changes,
  });

const taskRun = (id: number, payloads: unknown[], changes: Partial<Run> = {}): Run =>
  agentRun(id, "", { work: { kind: "function", task: "reply", args: [], kwargs: { payloads } }, ...changes });

const answers = (runs: Run[], held: Partial<Session> = {}): Record<string, unknown> => ({
  [`GET ${AT}`]: sampleSession({ key: KEY, ...held }),
  [`GET ${AT}/messages`]: { items: runs, next: null },
  "GET /api/tasks": { items: [{ name: "answer", nodes: [], schedules: [], schedule_count: 0 }] },
  "GET /api/projects": { items: [{ name: "blog", folder: "/srv/blog", env: {} }] },
});

const open = () => renderPage(SessionPage, { route: "/sessions/$key", at: "/sessions/dm%3A42%2Fa" });
const thread = () => screen.findByRole("log", { name: "Conversation" });
const entry = async (id: number) => within(await screen.findByRole("article", { name: `Run ${id}` }));
const box = () => screen.findByLabelText<HTMLTextAreaElement>("Message");
const posted = (asked: ReturnType<typeof stubServer>) => asked.filter((one) => one.method === "POST");

describe("the conversation", () => {
  it("is oldest first, with what was sent, the answer, its cost and its run", async () => {
    const said = { result: { text: "In stock:\n  2 lamps <b>" }, totals: { cost_usd: 0.25 } };
    stubServer(answers([agentRun(2, "Two of them"), agentRun(1, "Is the lamp in stock?", said)]));
    open();
    const log = await thread();
    expect(within(log).getAllByRole("article").map((one) => one.getAttribute("aria-label"))).toEqual(["Run 1", "Run 2"]);
    const first = await entry(1);
    expect(first.getByText("Is the lamp in stock?")).toBeDefined();
    expect(first.getByText(/In stock:/).textContent).toBe("In stock:\n  2 lamps <b>");
    expect(first.getByText("$0.25")).toBeDefined();
    expect(first.getByRole("link", { name: "run 1" }).getAttribute("href")).toBe("/runs/1");
    expect((await entry(2)).getByText("Done, without an answer.")).toBeDefined();
  });

  it("tells in place what did not come to an answer", async () => {
    const ended = (id: number, state: Run["state"], cause: Run["cause"], reason: string, more: Partial<Run> = {}) =>
      agentRun(id, `message ${id}`, { state, cause, reason, ...more });
    stubServer(
      answers([
        ended(5, "failed", "agent_error", "API Error: 500", { error: "API Error: 500" }),
        ended(4, "skipped", "budget", "the budget of the day is used up"),
        ended(3, "skipped", "dropped", "dropped: its session's queue was full"),
        ended(2, "cancelled", "session_stopped", "its session was stopped"),
        ended(1, "superseded", "interrupted", "interrupted by a newer message of its session"),
      ]),
    );
    open();
    await thread();
    for (const [id, label, reason] of [
      [1, "interrupted", "Interrupted by a newer message of its session"],
      [2, "stopped", "Its session was stopped"],
      [3, "dropped", "Dropped: its session's queue was full"],
      [4, "over budget", "The budget of the day is used up"],
      [5, "failed", "API Error: 500"],
    ] as const) {
      const one = await entry(id);
      expect(one.getByText(label)).toBeDefined();
      expect(one.getByText(reason)).toBeDefined();
    }
  });

  it("says what a waiting message waits for", async () => {
    const waiting = agentRun(3, "and then?", { state: "queued", started_at: null, finished_at: null });
    stubServer({ ...answers([waiting]), "GET /api/runs/3": { ...waiting, reason: "it waits for its turn, behind run 2" } });
    open();
    expect(await (await entry(3)).findByText("It waits for its turn, behind run 2")).toBeDefined();
  });

  it("folds a long text, and loads the rest of one that the list cut", async () => {
    const long = Array.from({ length: 50 }, (_, line) => `line ${line + 1}`).join("\n");
    const cut = agentRun(2, "why?", { result: { text: "the beginning…" }, cut: ["result"] });
    stubServer({
      ...answers([cut, agentRun(1, long, { result: { text: "short" } })]),
      "GET /api/runs/2": { ...cut, cut: undefined, result: { text: "the beginning and the end" } },
    });
    open();
    const first = await entry(1);
    expect(first.queryByText(/line 50/)).toBeNull();
    await userEvent.click(first.getByRole("button", { name: "Show all" }));
    expect(first.getByText(/line 50/)).toBeDefined();
    const second = await entry(2);
    await userEvent.click(second.getByRole("button", { name: "Show all" }));
    expect(await second.findByText("the beginning and the end")).toBeDefined();
  });

  it("loads earlier messages when asked to", async () => {
    const asked = stubServer({
      ...answers([]),
      [`GET ${AT}/messages`]: (({ query }) =>
        query.get("cursor") === null
          ? { items: [agentRun(2, "newer")], next: "then" }
          : { items: [agentRun(1, "older")], next: null }) satisfies Answer,
    });
    open();
    await userEvent.click(await screen.findByRole("button", { name: "Earlier messages" }));
    expect(await screen.findByText("older")).toBeDefined();
    expect(screen.getAllByRole("article").map((one) => one.getAttribute("aria-label"))).toEqual(["Run 1", "Run 2"]);
    expect(screen.queryByRole("button", { name: "Earlier messages" })).toBeNull();
    expect(asked.filter((one) => one.path.endsWith("/messages")).map((one) => one.query.get("cursor"))).toEqual([null, "then"]);
  });
});

describe("a run under way", () => {
  let client: LiveClient;
  let line: { tell: (message: unknown) => void; open: () => void };
  beforeEach(() => {
    const socket = { readyState: WebSocket.OPEN, send: () => undefined, close: () => undefined } as unknown as WebSocket;
    client = new LiveClient({ open: () => socket });
    setLiveClient(client);
    line = {
      open: () => socket.onopen?.(new Event("open")),
      tell: (message) => socket.onmessage?.({ data: JSON.stringify(message) } as MessageEvent),
    };
  });
  afterEach(() => client.stop());

  it("is followed line by line until its answer is there", async () => {
    let now = agentRun(4, "look around", { state: "running", finished_at: null });
    stubServer({
      ...answers([], { running: 1 }),
      [`GET ${AT}/messages`]: () => ({ items: [now], next: null }),
      "GET /api/runs/4/lines": { lines: [{ number: 1, at: null, line: "Let me look." }], more: false, ended: false },
    });
    client.start();
    act(() => line.open());
    open();
    const one = await entry(4);
    expect(await one.findByText("Let me look.")).toBeDefined();
    const more = [{ number: 2, at: null, line: "There is much to see." }];
    act(() => line.tell({ type: "lines", topic: "output:4", cursor: "2", lines: more }));
    expect(await one.findByText("There is much to see.")).toBeDefined();
    now = agentRun(4, "look around", { result: { text: "I saw it all." } });
    act(() => line.tell({ type: "event", topic: `session:${KEY}`, event: { kind: "run_finished" } }));
    expect(await one.findByText("I saw it all.")).toBeDefined();
    expect(one.queryByText("Let me look.")).toBeNull();
  });
});

describe("the box", () => {
  it("sends on Enter to whoever got the last message, and shows the text at once", async () => {
    let answer: (run: Run) => void = () => undefined;
    const asked = stubServer({
      ...answers([agentRun(1, "hello", { project: "blog" })]),
      [`POST ${AT}/messages`]: () => new Promise<Run>((resolve) => (answer = resolve)),
    });
    open();
    expect(await screen.findByText(/To agent claude, opus, in project blog/)).toBeDefined();
    await userEvent.selectOptions(screen.getByLabelText("Mode"), "Interrupt");
    await userEvent.type(await box(), "one{Shift>}{Enter}{/Shift}two{Enter}");
    const unsent = within(await screen.findByRole("article", { name: "Message on its way" }));
    expect(unsent.getByText(/one/).textContent).toBe("one\ntwo");
    expect((await box()).value).toBe("");
    await userEvent.type(await box(), "three{Enter}");
    expect(screen.getAllByRole("article", { name: "Message on its way" })).toHaveLength(2);
    expect(posted(asked)).toHaveLength(1); // one after the other, so that they keep their order
    answer(agentRun(2, "one\ntwo"));
    await waitFor(() => expect(posted(asked)).toHaveLength(2));
    answer(agentRun(3, "three"));
    await waitFor(() => expect(screen.queryByRole("article", { name: "Message on its way" })).toBeNull());
    const to = { agent: { cli: "claude", model: "opus" }, project: "blog", mode: "interrupt" };
    expect(posted(asked).map((one) => one.body)).toEqual([
      { ...to, payload: "one\ntwo" },
      { ...to, payload: "three" },
    ]);
  });

  it.each([
    [409, "the queue of session 'dm:42/a' is full (cap is 1), and drop is 'new'"],
    [403, "agent work is for an admin"],
    [503, "the database is away"],
  ])("keeps what could not be sent (%i), and says why", async (status, detail) => {
    stubServer({ ...answers([agentRun(1, "hello")]), [`POST ${AT}/messages`]: problem(status, detail) });
    open();
    await userEvent.type(await box(), "are you there?{Enter}");
    expect(await screen.findByText(detail)).toBeDefined();
    expect((await box()).value).toBe("are you there?");
    expect(screen.queryByRole("article", { name: "Message on its way" })).toBeNull();
  });

  it("brings back, in their order, all that was written until the first could not be sent", async () => {
    let answer: (answer: Response) => void = () => undefined;
    const asked = stubServer({
      ...answers([agentRun(1, "hello")]),
      [`POST ${AT}/messages`]: () => new Promise<Response>((resolve) => (answer = resolve)),
    });
    open();
    await userEvent.type(await box(), "one{Enter}");
    await userEvent.type(await box(), "two{Enter}");
    await userEvent.type(await box(), "thr");
    answer(problem(409, "the queue is full"));
    expect(await screen.findByText("the queue is full")).toBeDefined();
    expect((await box()).value).toBe("one\ntwo\nthr");
    expect(posted(asked)).toHaveLength(1);
  });

  it("keeps what is written, and what the login that ended did not let through, when the page is left", async () => {
    stubServer({ ...answers([agentRun(1, "hello")]), [`POST ${AT}/messages`]: problem(401, "log in first") });
    const { router } = open();
    await userEvent.type(await box(), "half a thought{Enter}");
    await screen.findByText("log in first");
    await act(() => router.navigate({ to: "/elsewhere" }));
    expect(screen.queryByLabelText("Message")).toBeNull();
    await act(() => router.navigate({ to: "/sessions/$key", params: { key: KEY } }));
    expect((await box()).value).toBe("half a thought");
  });

  it("keeps what is written while another tab is looked at", async () => {
    stubServer({ ...answers([agentRun(1, "hello")]), [`GET ${AT}/events`]: { items: [] } });
    open();
    await userEvent.type(await box(), "half a th");
    await userEvent.click(screen.getByRole("tab", { name: "Events" }));
    await screen.findByText("No events yet");
    await userEvent.click(screen.getByRole("tab", { name: "Conversation" }));
    expect((await box()).value).toBe("half a th");
  });

  it.each([
    ["viewer", taskRun(1, ["hello"]), /Only an operator or an admin may send a message; you are a viewer/],
    ["operator", agentRun(1, "hello"), /Only an admin may send a message to an agent; you are an operator/],
  ])("is not there for a %s who may not send, who is told why", async (role, run, why) => {
    stubServer({ ...answers([run]), "GET /api/me": { ...ME, role } });
    open();
    expect(await screen.findByText(why)).toBeDefined();
    expect(screen.queryByLabelText("Message")).toBeNull();
  });

  it("is there for an operator where a task answers", async () => {
    stubServer({ ...answers([taskRun(1, ["hello"])]), "GET /api/me": { ...ME, role: "operator" } });
    open();
    expect(await box()).toBeDefined();
    expect(screen.getByText(/To task reply/)).toBeDefined();
  });

  it("asks for the whole of an agent whose options the list cut", async () => {
    const whole = agentRun(1, "very long", { cut: undefined });
    const cut = { ...whole, cut: ["work"], work: sampleAgent({ prompt: "very…" }) };
    const asked = stubServer({
      ...answers([cut as Run]),
      "GET /api/runs/1": whole,
      [`POST ${AT}/messages`]: agentRun(2, "go on"),
    });
    open();
    await userEvent.type(await box(), "go on{Enter}");
    await waitFor(() => expect(posted(asked)).toHaveLength(1));
    expect(posted(asked)[0]?.body).toEqual({ agent: { cli: "claude", model: "opus" }, payload: "go on" });
  });
});

describe("the head", () => {
  it("says what was used and how full the context is", async () => {
    const used = { cost_usd: 1.5, tokens_in: 12_000, tokens_out: 900, turns: 7 };
    stubServer(answers([], { ...used, context_used: 134_000, context_window: 200_000 }));
    open();
    expect(await screen.findByText(/\$1\.50/)).toBeDefined();
    expect(screen.getByText(/tokens: 12,000 in, 900 out · 7 turns/)).toBeDefined();
    const meter = screen.getByRole("meter", { name: "How full the context is" });
    expect(meter.getAttribute("aria-valuetext")).toBe("134,000 of 200,000 tokens, 67 %");
  });

  it("says that a throttled session goes one at a time", async () => {
    stubServer(answers([], { throttled: true, max_concurrent: 3 }));
    open();
    expect(await screen.findByText(/throttled to one at a time/)).toBeDefined();
    expect(screen.queryByText(/at most 3 at once/)).toBeNull();
  });

  it("stop all says what will go, and asks first", async () => {
    const asked = stubServer({
      ...answers([], { running: 1, queued: 2 }),
      [`POST ${AT}/stop_all`]: { cancelled: [1], dropped: [2, 3] },
    });
    open();
    await userEvent.click(await screen.findByRole("button", { name: "Stop all" }));
    await screen.findByText(/1 run will be cancelled and 2 queued runs dropped/);
    await userEvent.click(screen.getAllByRole("button", { name: "Stop all" }).at(-1) as HTMLElement);
    await waitFor(() => expect(asked.some((one) => one.path.endsWith("/stop_all"))).toBe(true));
  });

  it("an idle session cannot be stopped", async () => {
    stubServer(answers([]));
    open();
    const button = await screen.findByRole("button", { name: "Stop" });
    expect(button.getAttribute("aria-disabled")).toBe("true");
  });
});
