import { formatTime } from "@/time/format";

const NAMED = /\b(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}) UTC\b/g;

/** A sentence of the server, with the times that it names in UTC told in this zone. */
export function inZone(sentence: string, zone: string, now: number): string {
  return sentence.replace(NAMED, (_, day: string, clock: string) =>
    formatTime(Date.parse(`${day}T${clock}Z`), zone, now, true),
  );
}
