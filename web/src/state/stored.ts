/** A choice of the person at this browser: kept in localStorage, the same in every tab. */

import { useSyncExternalStore } from "react";

export interface Stored<T extends string> {
  get(): T;
  set(value: T): void;
  subscribe(listener: () => void): () => void;
  use(): T;
}

export function stored<T extends string>(key: string, choices: readonly T[], otherwise: T): Stored<T> {
  const name = `ostinato.${key}`;
  const listeners = new Set<() => void>();
  const known = (text: string | null): T => choices.find((choice) => choice === text) ?? otherwise;

  const read = (): T => {
    try {
      return known(localStorage.getItem(name));
    } catch {
      return otherwise;
    }
  };
  let value = read();

  const tell = (next: T): void => {
    value = next;
    for (const listener of listeners) listener();
  };
  window.addEventListener("storage", (event) => {
    if (event.key === name) tell(known(event.newValue));
  });

  const self: Stored<T> = {
    get: () => value,
    set(next) {
      try {
        localStorage.setItem(name, next);
      } catch {
        // Without storage the choice lasts as long as the page.
      }
      tell(next);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    use: () => useSyncExternalStore(self.subscribe, self.get),
  };
  return self;
}
