/** The second secret of a login. The cookie goes to every port of the host; this is kept in localStorage, which belongs to
 *  this origin alone, and is the same in every tab. */

import { hasHostLogin, PREFIX } from "@/api/mount";

/** Two servers that are mounted in one app share their origin. */
const NAME = `ostinato.origin_key${PREFIX}`;

/** Sent where the app around the page logs people in: no page of another origin can send this header. */
const OF_HOST = "host";

/** Without storage it lasts as long as the page. */
let held: string | null = null;

export function originKey(): string | null {
  if (hasHostLogin()) return OF_HOST;
  try {
    return localStorage.getItem(NAME) ?? held;
  } catch {
    return held;
  }
}

/** Keeps the key of a login that was made; null forgets it. */
export function keepOriginKey(key: string | null): void {
  held = key;
  try {
    if (key === null) localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, key);
  } catch {
    // A browser that keeps nothing: the next page has to log in again.
  }
}

/** Called when somebody has logged in in another tab; answers how to stop. */
export function whenLoggedInElsewhere(handler: () => void): () => void {
  const hear = (event: StorageEvent): void => {
    if (event.key === NAME && event.newValue !== null) handler();
  };
  window.addEventListener("storage", hear);
  return () => window.removeEventListener("storage", hear);
}
