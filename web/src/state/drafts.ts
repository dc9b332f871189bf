/** Texts that somebody began to write: they outlive the page that they are on, also a login that ended meanwhile. */

import { useState } from "react";
import { useMe } from "@/api/queries/me";

const drafts = new Map<string, string>();

/** A draft is of whoever is logged in, at one place. The function that changes it works after the page is left, too. */
export function useDraft(place: string): [string, (change: (text: string) => string) => void] {
  const name = `${useMe().data?.who ?? ""}\n${place}`;
  const [text, setText] = useState(() => drafts.get(name) ?? "");
  const change = (to: (text: string) => string): void => {
    const next = to(drafts.get(name) ?? "");
    if (next === "") drafts.delete(name);
    else drafts.set(name, next);
    setText(next);
  };
  return [text, change];
}

/** For tests, each of which is a browser of its own. */
export const forgetDrafts = (): void => drafts.clear();
