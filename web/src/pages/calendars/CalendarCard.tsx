/** One calendar: how many dates, which is next, the schedules that use it, and its verbs. */

import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useRemoveCalendar } from "@/api/queries/calendars";
import { useMay } from "@/api/queries/me";
import type { Calendar } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { IconButton } from "@/components/IconButton";
import { Ago } from "@/components/Time";
import { useToast } from "@/components/Toast";
import { counted, listed } from "@/time/format";
import { CalendarDialog } from "./CalendarDialog";
import { DateText } from "./DateText";
import { dateText, daysUntil, nextDate } from "./dates";

const FEW = 8;

interface CalendarCardProps {
  calendar: Calendar;
  today: string;
  /** A link leads to it: its dates are shown. */
  chosen: boolean;
}

export function CalendarCard({ calendar, today, chosen }: CalendarCardProps) {
  const { name, note, dates } = calendar;
  const may = useMay("operator");
  const [asking, setAsking] = useState<"edit" | "remove" | null>(null);
  const close = (): void => setAsking(null);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chosen) place.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <div ref={place} className="scroll-mt-16">
      <Card
        title={<span className="font-mono break-all">{name}</span>}
        aside={calendar.past ? <Badge tone="warn">all dates have passed</Badge> : undefined}
        className={chosen ? "outline-2 outline-accent" : undefined}
        actions={
          <>
            <IconButton
              icon="edit"
              label={`Change calendar ${name}`}
              why={may.reason}
              onClick={() => setAsking("edit")}
            />
            <IconButton
              icon="trash"
              label={`Remove calendar ${name}`}
              tone="danger"
              why={may.reason}
              onClick={() => setAsking("remove")}
            />
          </>
        }
      >
        {note !== null && <p className="mb-3 text-sm break-words">{note}</p>}
        <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
          <dt className="text-muted">Dates</dt>
          <dd className="tabular-nums">{dates.length}</dd>
          <dt className="text-muted">Next</dt>
          <dd>
            <Next dates={dates} today={today} />
          </dd>
          <dt className="text-muted">Used by</dt>
          <dd>
            <UsedBy schedules={calendar.schedules} />
          </dd>
          <dt className="text-muted">Changed</dt>
          <dd className="break-words">
            <Ago at={calendar.updated_at} />
            {calendar.updated_by !== null && ` by ${calendar.updated_by}`}
          </dd>
        </dl>
        {dates.length > 0 && <AllDates key={String(chosen)} dates={dates} today={today} open={chosen} />}
      </Card>
      {asking === "edit" && <CalendarDialog calendar={calendar} today={today} onClose={close} />}
      {asking === "remove" && <RemoveDialog calendar={calendar} onClose={close} />}
    </div>
  );
}

function Next({ dates, today }: { dates: readonly string[]; today: string }) {
  const next = nextDate(dates, today);
  if (next === undefined) return <span className="text-muted">none</span>;
  return (
    <>
      <span className="font-mono text-xs">{dateText(next)}</span>{" "}
      <span className="text-xs text-muted">· {daysUntil(next, today)}</span>
    </>
  );
}

function UsedBy({ schedules }: { schedules: readonly string[] }) {
  const [all, setAll] = useState(false);
  if (schedules.length === 0) return <span className="text-muted">no schedule</span>;
  const shown = all ? schedules : schedules.slice(0, FEW);
  return (
    <ul className="flex flex-wrap gap-x-3 gap-y-0.5">
      {shown.map((name) => (
        <li key={name} className="min-w-0">
          <Link to="/schedules/$name" params={{ name }} className="break-all text-accent hover:underline">
            {name}
          </Link>
        </li>
      ))}
      {schedules.length > shown.length && (
        <li>
          <button type="button" onClick={() => setAll(true)} className="rounded text-muted hover:text-ink hover:underline">
            and {schedules.length - shown.length} more
          </button>
        </li>
      )}
    </ul>
  );
}

function AllDates({ dates, today, open }: { dates: readonly string[]; today: string; open: boolean }) {
  return (
    <details open={open} className="mt-3">
      <summary className="w-fit rounded text-xs font-medium text-accent hover:underline">Show all dates</summary>
      <ul className="mt-2 flex max-h-64 flex-wrap gap-1.5 overflow-y-auto font-mono text-xs" tabIndex={0} aria-label="Dates">
        {dates.map((date) => (
          <li key={date} className="rounded-md bg-sunken px-2 py-0.5">
            <DateText date={date} today={today} />
          </li>
        ))}
      </ul>
    </details>
  );
}

function RemoveDialog({ calendar, onClose }: { calendar: Calendar; onClose: () => void }) {
  const { name, dates, schedules } = calendar;
  const remove = useRemoveCalendar();
  const say = useToast();
  const using =
    schedules.length === 0
      ? undefined
      : `${counted(schedules.length, "schedule")} ${schedules.length === 1 ? "uses" : "use"} it: ${listed(schedules)}.`;
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={`Remove calendar ${name}?`}
      text={
        using === undefined
          ? `Its ${counted(dates.length, "date")} will be gone. This cannot be undone.`
          : `${using} Give them another timing first, or take all dates out of the calendar.`
      }
      action="Remove calendar"
      danger
      why={using}
      onConfirm={async () => {
        await remove.mutateAsync({ name });
        say({ title: `Calendar ${name} is removed` });
      }}
    />
  );
}
