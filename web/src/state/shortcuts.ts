/** Keys: one listener for the page, a list that the help shows, and sequences such as `g s`. */

import { useEffect, useRef } from "react";
import { stored } from "@/state/stored";

export interface Shortcut {
  /** "n", "/", "?", "g s", "mod+k" (⌘ on a Mac, Ctrl elsewhere), "arrowleft". */
  keys: string;
  label: string;
  group: string;
  run: (event: KeyboardEvent) => void;
  /** Also while somebody types in a field. */
  always?: boolean;
}

/** Whether keys that are a character do something. Whoever speaks to the computer may not want that. */
export const characterKeys = stored<"on" | "off">("keys", ["on", "off"], "on");

const shortcuts: Shortcut[] = [];
const SEQUENCE_MS = 1200;
let pending = "";
let pendingAt = 0;

export const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

/** Alt is held to write the character: `[` is AltGr 8 on many keyboards, and Option 5 on others. */
const isComposed = (event: KeyboardEvent): boolean =>
  event.getModifierState("AltGraph") || (isMac && event.altKey && event.key.length === 1);

const named = (event: KeyboardEvent): string => {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  const key = event.key.toLowerCase();
  // AltGr counts as Ctrl and Alt together on Windows.
  return mod && !isComposed(event) ? `mod+${key}` : key;
};

/** "n", "?" and "g s", but not "mod+k" and "arrowleft". */
const isCharacters = (keys: string): boolean => keys.split(" ").every((key) => key.length === 1);

const works = (shortcut: Shortcut): boolean => characterKeys.get() === "on" || !isCharacters(shortcut.keys);

/** What lies over the page takes the keys; only `always` ones go through. */
const isCovered = (): boolean =>
  document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]') !== null;

export function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || (event.altKey && !isComposed(event))) return;
  const key = named(event);
  const free = !isTyping(event.target) && !isCovered();
  const sequence = pending !== "" && event.timeStamp - pendingAt < SEQUENCE_MS ? `${pending} ${key}` : key;
  const able = (wanted: string) =>
    shortcuts.findLast((each) => each.keys === wanted && works(each) && (free || each.always === true));
  const found = able(sequence) ?? able(key);
  pending = "";
  if (found !== undefined) {
    event.preventDefault();
    found.run(event);
  } else if (free && shortcuts.some((each) => works(each) && each.keys.startsWith(`${key} `))) {
    pending = key;
    pendingAt = event.timeStamp;
  }
}

/** Listens for as long as the page lives. */
export function listenForKeys(): () => void {
  window.addEventListener("keydown", handleKey);
  return () => window.removeEventListener("keydown", handleKey);
}

/** The keys that work now, the latest of each first. */
export function listShortcuts(): Shortcut[] {
  const seen = new Set<string>();
  return shortcuts
    .toReversed()
    .filter((each) => works(each) && !seen.has(each.keys) && seen.add(each.keys))
    .reverse();
}

/** Works while the component is there. The same keys of a component that came later win. */
export function useShortcut(
  keys: string,
  run: (event: KeyboardEvent) => void,
  {
    label,
    group = "This page",
    always = false,
    enabled = true,
  }: Partial<Shortcut> & { label: string; enabled?: boolean },
): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    if (!enabled) return undefined;
    const shortcut: Shortcut = { keys, label, group, always, run: (event) => latest.current(event) };
    shortcuts.push(shortcut);
    return () => {
      shortcuts.splice(shortcuts.indexOf(shortcut), 1);
    };
  }, [keys, label, group, always, enabled]);
}
