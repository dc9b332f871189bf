// How far back a list goes: a word in the address and in the key of its query, an instant when the server is asked.

import { serverNow } from "@/state/ticker";

const HOURS: Record<string, number> = { "1h": 1, "24h": 24, "7d": 168 };

export const SINCE = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
];

/** The instant so far back from now; nothing for a word that nobody knows. */
export function instantOf(since: string | undefined): string | undefined {
  const hours = since === undefined ? undefined : HOURS[since];
  return hours === undefined ? undefined : new Date(serverNow() - hours * 3_600_000).toISOString();
}
