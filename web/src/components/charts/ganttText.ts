// What a bar of the timeline says in words: for its tooltip, for screen readers and for the table.

import { counted, dayOf, formatClock, formatDuration, formatTime } from "@/time/format";
import { look } from "@/components/stateLook";
import { type GanttBar, countsOf, onlyPiece } from "./gantt";

export interface TextPlace {
  zone: string;
  now: number;
}

/** `succeeded`, `missed 12 due times`, `35 succeeded, 2 failed`, `due`. */
export function barTitle(bar: GanttBar): string {
  if (bar.kind === "due") return bar.count === 1 ? "due" : `due ${counted(bar.count, "time")}`;
  if (onlyPiece(bar) !== null) {
    if (bar.state === "missed") return bar.count === 1 ? "missed" : `missed ${counted(bar.count, "due time")}`;
    return look(bar.state).label;
  }
  return [...countsOf(bar, "count")].map(([state, count]) => `${count.toLocaleString("en-US")} ${look(state).label}`).join(", ");
}

/** `03:00:00 to 03:00:12, 12 s`. */
export function barTimes(bar: GanttBar, { zone, now }: TextPlace): string {
  const start = formatTime(bar.start, zone, now, true);
  const open = onlyPiece(bar) !== null && (bar.state === "running" || bar.state === "queued");
  if (open) return `${bar.state === "queued" ? "due" : "since"} ${start}, ${formatDuration((now - bar.start) / 1000)}`;
  if (bar.end === bar.start) return start;
  const took =
    onlyPiece(bar) !== null && bar.state !== "missed" ? `, ${formatDuration((bar.end - bar.start) / 1000)}` : "";
  return `${start} to ${formatTime(bar.end, zone, now, true)}${took}`;
}

/** The first moment of a day is told by its date, also where the clock begins it at 01:00; others by the clock. */
export function tickText(tick: number, zone: string): string {
  if (dayOf(tick, zone) === dayOf(tick - 1, zone)) return formatClock(tick, zone);
  return formatTime(tick, zone, 0).split(" ").slice(0, 2).join(" ");
}
