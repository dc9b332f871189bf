/** Calendars: named sets of dates, the schedules that leave them out, and what can be done about them. */

import { useState } from "react";
import { useCalendars } from "@/api/queries/calendars";
import { useMay } from "@/api/queries/me";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { SkeletonCards } from "@/components/Skeleton";
import { useToday } from "./useToday";
import { useUrlState } from "@/state/urlState";
import { CalendarCard } from "./CalendarCard";
import { CalendarDialog } from "./CalendarDialog";

export function CalendarsPage() {
  const calendars = useCalendars();
  const may = useMay("operator");
  const [values] = useUrlState();
  const [making, setMaking] = useState(false);
  const today = useToday(calendars.data?.zone);
  return (
    <>
      <PageHeader
        title="Calendars"
        description={
          <>
            Named sets of dates on which schedules that say so are not due:{" "}
            <code className="font-mono text-xs">daily 09:00 except calendar(office)</code>.
          </>
        }
        actions={
          <Button variant="primary" icon="plus" why={may.reason} onClick={() => setMaking(true)}>
            New calendar
          </Button>
        }
      />
      <QueryView query={calendars} skeleton={<SkeletonCards cards={2} />}>
        {({ items }) =>
          items.length === 0 ? (
            <Card>
              <EmptyState
                icon="calendar"
                title="There are no calendars yet"
                text="The days on which an office is closed, or nobody deploys: make one here, or with this command:"
                command="ostinato calendar set office 2026-12-24 12-31"
              />
            </Card>
          ) : (
            <ul className="grid items-start gap-4 lg:grid-cols-2">
              {items.map((calendar) => (
                <li key={calendar.name} className="min-w-0">
                  <CalendarCard calendar={calendar} today={today} chosen={values["calendar"] === calendar.name} />
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
      {making && <CalendarDialog calendar={null} today={today} onClose={() => setMaking(false)} />}
    </>
  );
}
