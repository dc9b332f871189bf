/** The calendars that there are, to leave their days out of a timing with one press; and one that is yet to be made. */

import { useId, useState } from "react";
import { useCalendars } from "@/api/queries/calendars";
import { useMay } from "@/api/queries/me";
import { Button } from "@/components/Button";
import { CalendarDialog } from "../calendars/CalendarDialog";
import { useToday } from "../calendars/useToday";
import { calendarsIn, whyNoDaysOff, withCalendar, withoutCalendar } from "./daysOff";
import { Preset } from "./Preset";

export function CalendarChoice({ text, onText }: { text: string; onText: (text: string) => void }) {
  const title = useId();
  const { data } = useCalendars();
  const may = useMay("operator");
  const [making, setMaking] = useState<string | null>(null);
  const today = useToday(data?.zone);
  if (data === undefined) return null;
  const names = data.items.map((calendar) => calendar.name);
  const used = calendarsIn(text);
  const missing = used.filter((name) => !names.includes(name));
  if (names.length + missing.length === 0) return null;
  const why = whyNoDaysOff(text);
  return (
    <div className="flex flex-wrap items-center gap-1.5">
      <span id={title} className="mr-1 text-xs text-muted">
        Leave out the days of
      </span>
      <div role="group" aria-labelledby={title} className="flex flex-wrap gap-1.5">
        {names.map((name) => (
          <Preset
            key={name}
            label={name}
            pressed={used.includes(name)}
            why={used.includes(name) ? undefined : why}
            onClick={() => onText(used.includes(name) ? withoutCalendar(text, name) : withCalendar(text, name))}
          />
        ))}
      </div>
      {missing.map((name) => (
        <Button key={name} size="small" icon="plus" why={may.reason} onClick={() => setMaking(name)}>
          Make calendar {name}
        </Button>
      ))}
      {making !== null && (
        <CalendarDialog calendar={null} name={making} today={today} onClose={() => setMaking(null)} />
      )}
    </div>
  );
}
