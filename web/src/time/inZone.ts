import { browserZone } from "@/state/zone";
import { formatTime } from "@/time/format";

const NAMED = /\b(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}) (UTC|[+-]\d{2}:\d{2})\b/g;

/** A sentence of the server, with the times that it names told in this zone; which is named if it is another than the
 * browser's. The server names them by its own clock: `2026-11-19 22:47:39 +01:00`, or `… UTC`. */
export function inZone(sentence: string, zone: string, now: number): string {
  const behind = zone === browserZone() ? "" : ` ${zone}`;
  return sentence.replace(NAMED, (_, day: string, clock: string, offset: string) => {
    const moment = Date.parse(`${day}T${clock}${offset === "UTC" ? "Z" : offset}`);
    return formatTime(moment, zone, now, true) + behind;
  });
}
