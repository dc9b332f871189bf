import { browserZone } from "@/state/zone";
import { formatTime } from "@/time/format";

const NAMED = /\b(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}) UTC\b/g;

/** A sentence of the server, with the times that it names in UTC told in this zone; which is named if it is another
 * than the browser's. */
export function inZone(sentence: string, zone: string, now: number): string {
  const behind = zone === browserZone() ? "" : ` ${zone}`;
  return sentence.replace(NAMED, (_, day: string, clock: string) => {
    const moment = Date.parse(`${day}T${clock}Z`);
    return formatTime(moment, zone, now, true) + behind;
  });
}
