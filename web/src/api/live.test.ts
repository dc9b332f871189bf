import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LiveClient, type LiveMessage } from "@/api/live";
import { keepOriginKey } from "@/api/originKey";

class FakeSocket {
  static all: FakeSocket[] = [];
  readyState = 0;
  sent: Record<string, unknown>[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  constructor() {
    FakeSocket.all.push(this);
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }

  close(code = 1006): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.({ code });
  }

  /** Lets the client in: answers its first ping. */
  accept(): void {
    this.open();
    this.say({ type: "pong" });
  }

  /** Takes the connection, but says nothing yet. */
  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  /** What it was sent, but for the login and the first ping. */
  get asked(): Record<string, unknown>[] {
    return this.sent
      .slice(1)
      .filter(
        (message, place, rest) =>
          message["type"] !== "ping" || rest.slice(0, place).some((one) => one["type"] === "ping"),
      );
  }

  say(message: Record<string, unknown>): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

const socket = (place: number): FakeSocket => {
  const found = FakeSocket.all[place];
  if (found === undefined) throw new Error(`there is no socket ${place}`);
  return found;
};

let client: LiveClient;
const mayReconnect = vi.fn(async () => true);

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-11-16T12:03:00Z") });
  FakeSocket.all = [];
  mayReconnect.mockReset().mockResolvedValue(true);
  client = new LiveClient({ open: () => new FakeSocket() as unknown as WebSocket, mayReconnect, random: () => 0.5 });
});

afterEach(() => client.stop());

describe("what is loaded first", () => {
  const done = vi.fn();
  const begin = (): void => {
    client = new LiveClient({ open: () => new FakeSocket() as unknown as WebSocket, mayReconnect, loadsWait: true });
    done.mockReset();
    void client.begun().then(done);
    client.subscribe("overview", () => undefined);
    client.start();
  };

  it("waits until all topics of the page have begun", async () => {
    begin();
    socket(0).open();
    socket(0).say({ type: "subscribed", topic: "overview" });
    await vi.advanceTimersByTimeAsync(0);
    expect([done.mock.calls.length, client.isBehind]).toEqual([0, false]);
    socket(0).say({ type: "pong" });
    await vi.advanceTimersByTimeAsync(0);
    expect([done.mock.calls.length, client.isBehind]).toEqual([1, true]);
  });

  it("does not wait for a stream that takes long", async () => {
    begin();
    await vi.advanceTimersByTimeAsync(399);
    expect(done).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect([done.mock.calls.length, client.isBehind]).toEqual([1, true]);
  });

  it("does not wait for a stream that is refused", async () => {
    begin();
    socket(0).close();
    await vi.advanceTimersByTimeAsync(0);
    expect(done).toHaveBeenCalledOnce();
  });
});

const line = (number: number, cursor: string) => ({
  type: "lines",
  topic: "output:7",
  cursor,
  lines: [{ number, at: null, line: `line ${number}` }],
});

describe("the live client", () => {
  it("subscribes what was asked for before it was open, with the cursor that was given", () => {
    client.subscribe("output:7", () => undefined, "12");
    client.start();
    expect(socket(0).sent).toEqual([]);
    socket(0).accept();
    expect(socket(0).asked).toEqual([{ type: "subscribe", topic: "output:7", cursor: "12" }]);
    expect(client.getConnection()).toEqual({ state: "live", since: null });
  });

  it("says the key of this origin before all else, the one that is kept now", async () => {
    keepOriginKey("key");
    client.subscribe("overview", () => undefined);
    client.start();
    socket(0).accept();
    expect(socket(0).sent[0]).toEqual({ type: "login", origin_key: "key" });
    keepOriginKey("another");
    socket(0).close();
    await vi.advanceTimersByTimeAsync(500);
    socket(1).accept();
    expect(socket(1).sent[0]).toEqual({ type: "login", origin_key: "another" });
  });

  it("goes on after a drop from the cursor of the last message", async () => {
    const heard: LiveMessage[] = [];
    client.subscribe("output:7", (message) => heard.push(message), "0");
    client.start();
    socket(0).accept();
    socket(0).say(line(1, "1"));
    socket(0).say(line(2, "2"));
    socket(0).close();
    await vi.advanceTimersByTimeAsync(500);
    socket(1).accept();
    expect(socket(1).asked).toEqual([{ type: "subscribe", topic: "output:7", cursor: "2" }]);
    expect(heard).toHaveLength(2);
  });

  it("asks after a drop for what comes from then on, where there are no lines to go on from", async () => {
    client.subscribe("overview", () => undefined);
    client.start();
    socket(0).accept();
    socket(0).say({ type: "subscribed", topic: "overview" });
    socket(0).close();
    await vi.advanceTimersByTimeAsync(500);
    socket(1).accept();
    expect(socket(1).asked).toEqual([{ type: "subscribe", topic: "overview", cursor: null }]);
  });

  it("is stale since the drop, however often it fails to come back, and live again at last", async () => {
    const back = vi.fn();
    client.onReconnected(back);
    client.start();
    socket(0).accept();
    expect(back).not.toHaveBeenCalled();
    const dropped = Date.now();
    socket(0).close();
    await vi.advanceTimersByTimeAsync(500);
    socket(1).close();
    await vi.advanceTimersByTimeAsync(1000);
    expect(client.getConnection()).toEqual({ state: "stale", since: dropped });
    socket(2).accept();
    expect(client.getConnection()).toEqual({ state: "live", since: null });
    expect(back).toHaveBeenCalledOnce();
  });

  it("waits longer after each failure, up to 15 seconds, and briefly again after a success", async () => {
    client.start();
    const waits: number[] = [];
    for (let failure = 0; failure < 8; failure += 1) {
      const count = FakeSocket.all.length;
      socket(count - 1).close();
      await vi.advanceTimersByTimeAsync(0);
      const from = Date.now();
      await vi.advanceTimersToNextTimerAsync();
      expect(FakeSocket.all).toHaveLength(count + 1);
      waits.push(Date.now() - from);
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
  });

  it("gives up when the server refuses because nobody is logged in", async () => {
    mayReconnect.mockResolvedValue(false);
    client.start();
    socket(0).close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(FakeSocket.all).toHaveLength(1);
  });

  it("gives up when the server lets it in and then says that the login is no longer good", async () => {
    mayReconnect.mockResolvedValue(false);
    client.start();
    socket(0).accept();
    socket(0).close(4401);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(FakeSocket.all).toHaveLength(1);
  });

  it("is not live before the server has said a word", () => {
    client.start();
    socket(0).open();
    expect(client.getConnection().state).toBe("connecting");
    socket(0).say({ type: "error", topic: null, problem: { status: 401 } });
    expect(client.getConnection().state).toBe("connecting");
  });

  it("asks again for a topic that the server could not give, and drops a cursor that it does not know", async () => {
    const heard = vi.fn();
    client.subscribe("output:7", heard, "old");
    client.start();
    socket(0).accept();
    socket(0).say({ type: "error", topic: "output:7", problem: { status: 503 } });
    await vi.advanceTimersByTimeAsync(3000);
    socket(0).say({ type: "error", topic: "output:7", problem: { status: 422 } });
    expect(socket(0).asked.map((message) => message["cursor"])).toEqual(["old", "old", null]);
    expect(heard).toHaveBeenCalledTimes(2);
  });

  it("does not wait when the network is back", async () => {
    client.start();
    socket(0).close();
    await vi.advanceTimersByTimeAsync(0);
    window.dispatchEvent(new Event("online"));
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("has one connection, also when somebody hurries while it asks whether it may come back", async () => {
    let allow: (may: boolean) => void = () => undefined;
    mayReconnect.mockImplementationOnce(() => new Promise((resolve) => (allow = resolve)));
    client.start();
    socket(0).close();
    window.dispatchEvent(new Event("online"));
    allow(true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(FakeSocket.all).toHaveLength(2);
    client.stop();
    expect(FakeSocket.all.map((each) => each.readyState)).toEqual([3, 3]);
  });

  it("closes a connection that says nothing, not even to a ping", async () => {
    client.start();
    socket(0).accept();
    await vi.advanceTimersByTimeAsync(40_000);
    expect(socket(0).asked).toEqual([{ type: "ping" }, { type: "ping" }]);
    expect(client.getConnection().state).toBe("live");
    await vi.advanceTimersByTimeAsync(20_000);
    expect(client.getConnection().state).toBe("stale");
  });

  it("shares a topic among its handlers, and leaves it with the last of them", () => {
    client.start();
    socket(0).accept();
    const one = vi.fn();
    const stopOne = client.subscribe("overview", one);
    const stopTwo = client.subscribe("overview", () => undefined);
    stopOne();
    socket(0).say({ type: "skipped", topic: "overview", runs: 3 });
    expect(one).not.toHaveBeenCalled();
    stopTwo();
    expect(socket(0).asked.map((message) => message["type"])).toEqual(["subscribe", "unsubscribe"]);
  });
});
