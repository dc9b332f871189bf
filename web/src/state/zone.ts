/** In which zone times are shown: the browser's, that of their schedule, or UTC. */

import { stored } from "@/state/stored";

export const ZONES = ["browser", "schedule", "utc"] as const;
export type ZoneChoice = (typeof ZONES)[number];

export const ZONE_LABELS: Record<ZoneChoice, string> = {
  browser: "Browser's zone",
  schedule: "Schedule's zone",
  utc: "UTC",
};

export const zoneChoice = stored<ZoneChoice>("zone", ZONES, "browser");

let known: string | null = null;
// Somebody who travels comes back to the page in another zone.
document.addEventListener("visibilitychange", () => {
  known = null;
});

/** Asked for by every time on the page, and slow to find out: remembered. */
export function browserZone(): string {
  known ??= new Intl.DateTimeFormat("en-US").resolvedOptions().timeZone || "UTC";
  return known;
}

/** The zone to show a moment in, given the zone of its schedule if it has one. */
export function resolveZone(choice: ZoneChoice, scheduleZone?: string | null): string {
  if (choice === "utc") return "UTC";
  return choice === "schedule" && scheduleZone ? scheduleZone : browserZone();
}

export interface ZoneState {
  choice: ZoneChoice;
  set(choice: ZoneChoice): void;
  resolve(scheduleZone?: string | null): string;
}

export function useZone(): ZoneState {
  const choice = zoneChoice.use();
  return { choice, set: zoneChoice.set, resolve: (scheduleZone) => resolveZone(choice, scheduleZone) };
}
