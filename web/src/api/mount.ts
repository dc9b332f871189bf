/** Where the page is mounted in another app, and who logs its people in: the server says so in index.html. */

const said = (name: string): string =>
  document.querySelector<HTMLMetaElement>(`meta[name="ostinato-${name}"]`)?.content ?? "";

/** What stands before every path of the server: "" at the root, "/jobs" under /jobs. */
export const PREFIX = said("base").startsWith("/") ? said("base").replace(/\/+$/, "") : "";

/** Whether people log in to the app around this page, and not here. */
export const hasHostLogin = (): boolean => said("login") === "host";

/** A path of the server, as it is asked for. */
export const mounted = (path: string): string => PREFIX + path;
