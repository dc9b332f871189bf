import { useMe } from "@/api/queries/me";
import { useNow } from "@/state/ticker";
import { dayOf } from "@/time/format";

/** The date of now in the zone that calendars are told in, or in that of the server. */
export function useToday(zone?: string): string {
  const standard = useMe().data?.zone ?? "UTC";
  return dayOf(useNow(60_000), zone ?? standard);
}
