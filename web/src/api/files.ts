/** The files of the page that are loaded when they are first needed, and what to do when one does not come. */

import { mounted } from "@/api/mount";

/** A file did not come: the server is away, or has another version of the page. */
export class FileMissing extends Error {
  constructor() {
    super("This part of the page could not be loaded.");
    this.name = "FileMissing";
  }
}

let isBroken = false;

/** Loads a part of the page. A browser may remember that a file was missing: after that only a new page helps. */
export async function loadFile<T>(load: () => Promise<T>): Promise<T> {
  if (isBroken) throw new FileMissing();
  try {
    return await load();
  } catch {
    isBroken = true;
    throw new FileMissing();
  }
}

const REMEMBERED = "ostinato.reloaded";
const NOT_AGAIN_WITHIN = 10_000;

const isServed = (): Promise<boolean> =>
  fetch(new Request(mounted("/healthz"))).then(
    (answer) => answer.ok,
    () => false,
  );

/** Loads the page anew, but only from a server that answers: else all that is shown would be gone. */
export async function reloadPage(): Promise<void> {
  if (await isServed()) window.location.reload();
}

/** The same without being asked: not for ever, if the file is missing on the new page too. */
export async function reloadPageOnce(): Promise<void> {
  const last = Number(sessionStorage.getItem(REMEMBERED) ?? 0);
  if (Date.now() - last < NOT_AGAIN_WITHIN || !(await isServed())) return;
  sessionStorage.setItem(REMEMBERED, String(Date.now()));
  window.location.reload();
}
