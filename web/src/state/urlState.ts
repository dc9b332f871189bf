/** What a page keeps in the address: filters, the chosen tab. Reloading and sharing the address keeps it. */

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

export type UrlValues = Record<string, string>;

/** The values as text, and a function that changes some of them (undefined or "" removes) without a history entry. */
export function useUrlState(): [UrlValues, (changes: Record<string, string | undefined>) => void] {
  const search: UrlValues = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (changes: Record<string, string | undefined>) => {
      void navigate({
        to: ".",
        replace: true,
        resetScroll: false,
        search: (before: UrlValues): UrlValues => {
          const after: UrlValues = { ...before };
          for (const [name, value] of Object.entries(changes)) {
            if (value === undefined || value === "") delete after[name];
            else after[name] = value;
          }
          return after;
        },
      });
    },
    [navigate],
  );
  return [search, change];
}
