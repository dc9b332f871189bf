/** The pages of the navigation, with the keys that lead to them. */

import type { IconName } from "@/components/Icon";

export interface Place {
  to: string;
  label: string;
  icon: IconName;
  keys: string;
  /** What is read out, where the label alone could mean something on the page. */
  spoken?: string;
  /** On a phone: in the bar at the bottom, not behind "More". */
  main?: boolean;
}

export const PLACES: readonly Place[] = [
  { to: "/", label: "Overview", icon: "overview", keys: "g o", main: true },
  { to: "/schedules", label: "Schedules", icon: "list", keys: "g s", main: true },
  { to: "/runs", label: "Runs", icon: "activity", keys: "g r", spoken: "All runs" },
  { to: "/incidents", label: "Incidents", icon: "bell", keys: "g i" },
  { to: "/timeline", label: "Timeline", icon: "timeline", keys: "g t", main: true },
  { to: "/calendars", label: "Calendars", icon: "calendar", keys: "g c" },
  { to: "/lanes", label: "Lanes", icon: "lanes", keys: "g l", main: true },
  { to: "/sessions", label: "Sessions", icon: "inbox", keys: "g m" },
  { to: "/nodes", label: "Nodes", icon: "nodes", keys: "g n" },
  { to: "/settings", label: "Settings", icon: "gear", keys: "g ," },
];
