import { useScheduleHistory } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { Card } from "@/components/Card";
import { QueryView } from "@/components/QueryView";
import { Skeleton } from "@/components/Skeleton";
import { HeatMap } from "@/components/charts/HeatMap";
import { useNow } from "@/state/ticker";
import { dayOf } from "@/time/format";

/** Half a year by day, in the schedule's zone. */
export function HistoryCard({ schedule }: { schedule: Schedule }) {
  const query = useScheduleHistory(schedule.name);
  const now = useNow(60_000);
  return (
    <Card title="By day" aside={`in ${schedule.zone}`}>
      <QueryView query={query} skeleton={<Skeleton className="h-32 w-full" />}>
        {(history) => <HeatMap history={history.days} today={dayOf(now, history.zone)} />}
      </QueryView>
    </Card>
  );
}
