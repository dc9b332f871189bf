/** The live stream: one WebSocket for the page, its topics, and the words "live" or "stale since". */

import { useEffect, useRef, useSyncExternalStore } from "react";
import { mounted } from "@/api/mount";
import { originKey } from "@/api/originKey";
import type { LiveEvent, OutputLine, Problem } from "@/api/types";
import { serverNow } from "@/state/ticker";

export type LiveMessage =
  | { type: "subscribed"; topic: string; cursor?: string }
  | { type: "event"; topic: string; event: LiveEvent }
  | { type: "lines"; topic: string; cursor: string; lines: OutputLine[] }
  | { type: "ended"; topic: string }
  | { type: "skipped"; topic: string; runs: number }
  | { type: "error"; topic: string | null; problem: Problem };

export type LiveHandler = (message: LiveMessage) => void;

export interface Connection {
  state: "connecting" | "live" | "stale";
  /** Since when nothing can be heard, in milliseconds by the clock of the server; null while it is live. */
  since: number | null;
}

interface Subscription {
  /** Of output: the number of the last line that came. Events have none: after a drop the page loads anew. */
  cursor: string | null;
  handlers: Set<LiveHandler>;
}

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;
const PING_EVERY = 20_000;
const SILENCE = 45_000;
/** What is loaded first waits so long for the stream to begin. */
const PATIENCE = 400;
/** What the server closes with when the login or the token is no longer valid. */
const NOT_LOGGED_IN = 4401;

export interface LiveOptions {
  open?: () => WebSocket;
  /** Asked when a connection fails: false when we are not logged in (any more), so that it makes no sense to go on. */
  mayReconnect?: () => Promise<boolean>;
  /** What is loaded waits in `begun()` until the stream has begun. */
  loadsWait?: boolean;
  /** A number in 0..1; spreads the clients of a server that came back. */
  random?: () => number;
}

function openSocket(): WebSocket {
  const scheme = window.location.protocol === "https:" ? "wss" : "ws";
  return new WebSocket(`${scheme}://${window.location.host}${mounted("/api/live")}`);
}

export class LiveClient {
  private readonly topics = new Map<string, Subscription>();
  private readonly listeners = new Set<() => void>();
  private readonly reconnected = new Set<() => void>();
  private readonly options: Required<LiveOptions>;
  private socket: WebSocket | null = null;
  private connection: Connection = { state: "connecting", since: null };
  private failures = 0;
  private wanted = false;
  private wasLive = false;
  private isHeard = false;
  private heardAt = 0;
  private loadsGo = false;
  private readonly loads = new Set<() => void>();
  private patience: ReturnType<typeof setTimeout> | undefined;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private pingTimer: ReturnType<typeof setInterval> | undefined;

  constructor(options: LiveOptions = {}) {
    this.options = { open: openSocket, mayReconnect: async () => true, loadsWait: false, random: Math.random, ...options };
  }

  getConnection = (): Connection => this.connection;

  onConnection = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Called when the stream is back after a drop. */
  onReconnected(listener: () => void): () => void {
    this.reconnected.add(listener);
    return () => this.reconnected.delete(listener);
  }

  /** Before something is loaded: what the stream tells begins before it, so that no change falls in between. A stream that
   *  takes long, or does not come, is not waited for. */
  async begun(): Promise<void> {
    if (!this.options.loadsWait || this.loadsGo) return;
    if (this.patience === undefined) this.wait();
    await new Promise<void>((resolve) => this.loads.add(resolve));
  }

  /** Whether something may have been loaded already. */
  get isBehind(): boolean {
    return !this.options.loadsWait || this.loadsGo;
  }

  private wait(): void {
    clearTimeout(this.patience);
    this.patience = setTimeout(this.letGo, PATIENCE);
  }

  private readonly letGo = (): void => {
    this.loadsGo = true;
    clearTimeout(this.patience);
    for (const go of this.loads) go();
    this.loads.clear();
  };

  start(): void {
    if (this.wanted) return;
    this.wanted = true;
    if (this.patience !== undefined) this.wait();
    window.addEventListener("online", this.hurry);
    document.addEventListener("visibilitychange", this.hurry);
    this.connect();
  }

  stop(): void {
    this.wanted = false;
    window.removeEventListener("online", this.hurry);
    document.removeEventListener("visibilitychange", this.hurry);
    clearTimeout(this.retryTimer);
    this.drop();
    // Forgotten first: a close that we want is no drop.
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.wasLive = false;
    this.say({ state: "connecting", since: null });
  }

  /** Hear of a topic, of output from a cursor on; answers how to stop. A second handler shares the cursor. */
  subscribe(topic: string, handler: LiveHandler, cursor: string | null = null): () => void {
    let subscription = this.topics.get(topic);
    if (subscription === undefined) {
      subscription = { cursor, handlers: new Set() };
      this.topics.set(topic, subscription);
      this.send({ type: "subscribe", topic, cursor });
    }
    subscription.handlers.add(handler);
    const held = subscription;
    return () => {
      held.handlers.delete(handler);
      if (held.handlers.size > 0 || this.topics.get(topic) !== held) return;
      this.topics.delete(topic);
      this.send({ type: "unsubscribe", topic });
    };
  }

  private connect(): void {
    clearTimeout(this.retryTimer);
    const socket = this.options.open();
    this.socket = socket;
    this.isHeard = false;
    socket.onopen = () => {
      this.heardAt = Date.now();
      // A browser gives a socket the cookie, but no header: the key that it needs beside it comes first.
      this.send({ type: "login", origin_key: originKey() ?? "" });
      for (const [topic, { cursor }] of this.topics) this.send({ type: "subscribe", topic, cursor });
      this.send({ type: "ping" });
      this.pingTimer = setInterval(this.ping, PING_EVERY);
    };
    socket.onmessage = (message: MessageEvent<string>) => this.hear(message.data);
    socket.onclose = (event: CloseEvent) => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.drop();
      this.letGo();
      this.say({ state: "stale", since: this.connection.since ?? serverNow() });
      void this.again(event.code === NOT_LOGGED_IN || !this.isHeard);
    };
  }

  /** The first answer: only now is it sure that we are let in. */
  private arrive(): void {
    this.isHeard = true;
    this.failures = 0;
    const again = this.wasLive;
    this.wasLive = true;
    this.say({ state: "live", since: null });
    if (again) for (const listener of this.reconnected) listener();
  }

  /** After a drop: wait, longer each time, and connect again. */
  private async again(isDoubtful: boolean): Promise<void> {
    // A browser does not tell why a WebSocket was refused; an ordinary request does.
    if (isDoubtful && !(await this.options.mayReconnect())) this.wanted = false;
    // While we asked, somebody may have been in a hurry and connected.
    if (!this.wanted || this.socket !== null) return;
    const pause = Math.min(FIRST_PAUSE * 2 ** this.failures, LONGEST_PAUSE);
    this.failures += 1;
    clearTimeout(this.retryTimer);
    this.retryTimer = setTimeout(() => this.connect(), pause * (0.75 + this.options.random() / 2));
  }

  /** The network or the person is back: do not wait for the timer. */
  private readonly hurry = (): void => {
    if (!this.wanted || this.socket !== null || document.visibilityState === "hidden") return;
    this.connect();
  };

  private readonly ping = (): void => {
    if (Date.now() - this.heardAt > SILENCE) this.socket?.close();
    else this.send({ type: "ping" });
  };

  private hear(text: string): void {
    this.heardAt = Date.now();
    const message = JSON.parse(text) as LiveMessage | { type: "pong" };
    if (!this.isHeard && (message.type !== "error" || message.topic !== null)) this.arrive();
    // It was asked for behind the topics: all of them are told by now.
    if (message.type === "pong") this.letGo();
    if (message.type === "pong" || message.topic === null) return;
    const subscription = this.topics.get(message.topic);
    if (subscription === undefined) return;
    if (message.type === "error") this.mend(message.topic, subscription, message.problem.status);
    if ("cursor" in message && message.cursor !== undefined) subscription.cursor = message.cursor;
    for (const handler of [...subscription.handlers]) handler(message);
  }

  /** A topic that could not be subscribed: later, when the server had no database, else without its cursor. */
  private mend(topic: string, subscription: Subscription, status: number): void {
    const retry = (): void => {
      if (this.topics.get(topic) === subscription) this.send({ type: "subscribe", topic, cursor: subscription.cursor });
    };
    if (status >= 500) setTimeout(retry, LONGEST_PAUSE / 5);
    else if (subscription.cursor !== null) {
      subscription.cursor = null;
      retry();
    }
  }

  private send(message: Record<string, unknown>): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private drop(): void {
    clearInterval(this.pingTimer);
  }

  private say(connection: Connection): void {
    if (connection.state === this.connection.state && connection.since === this.connection.since) return;
    this.connection = connection;
    for (const listener of this.listeners) listener();
  }
}

let client = new LiveClient();

/** The page's one connection. */
export const live = (): LiveClient => client;

/** Chosen once by main.tsx, and by tests. */
export function setLiveClient(next: LiveClient): void {
  client = next;
}

/** Hear of a topic while the component is there; null hears of nothing. The cursor counts when the topic is new. */
export function useLive(topic: string | null, handler: LiveHandler, cursor: string | null = null): void {
  const latest = useRef(handler);
  latest.current = handler;
  const from = useRef(cursor);
  from.current = cursor;
  useEffect(() => {
    if (topic === null) return undefined;
    return live().subscribe(topic, (message) => latest.current(message), from.current);
  }, [topic]);
}

export function useConnection(): Connection {
  return useSyncExternalStore(live().onConnection, live().getConnection);
}
