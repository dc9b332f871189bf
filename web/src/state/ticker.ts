/** One timer for everything on the page that counts: it ticks on the full second, and only while somebody looks. */

import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | undefined;
/** How far the server's clock is ahead of ours: a phone that is wrong by a minute still counts down rightly. */
let ahead = 0;
let current = Date.now();

/** A moment of our clock, by the server's. */
export const toServerTime = (moment: number): number => moment + ahead;

/** The server's time as far as we know it, in milliseconds. */
export const serverNow = (): number => toServerTime(Date.now());

/** Learn the server's time from an answer; less than a second is the way it took. */
export function alignClock(now: string): void {
  const difference = Date.parse(now) - Date.now();
  if (Number.isFinite(difference)) ahead = Math.abs(difference) < 1000 ? 0 : difference;
}

function arm(): void {
  timer = setTimeout(tick, 1000 - (serverNow() % 1000));
}

function tick(): void {
  current = serverNow();
  for (const listener of listeners) listener();
  arm();
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) arm();
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) clearTimeout(timer);
  };
}

/** Now, in milliseconds, cut to the step; the component renders anew when it changes. */
export function useNow(step = 1000): number {
  return useSyncExternalStore(subscribe, () => {
    // Without a running timer nobody keeps `current` fresh.
    if (listeners.size === 0) current = serverNow();
    return current - (current % step);
  });
}
