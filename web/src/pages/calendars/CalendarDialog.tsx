/** Makes a calendar, or changes one: its dates and its note. There only while it is asked. */

import { type FormEvent, useId, useState } from "react";
import { ProblemError } from "@/api/client";
import { useCalendars, useChangeCalendar, useMakeCalendar } from "@/api/queries/calendars";
import type { Calendar, FieldProblem } from "@/api/types";
import { Button } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { Dialog } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { ProblemNote } from "@/components/ProblemNote";
import { useToast } from "@/components/Toast";
import { listed } from "@/time/format";
import { DatesField } from "./DatesField";
import { inOrder, MOST_DATES, readDates } from "./dates";

interface CalendarDialogProps {
  /** null for a new one. */
  calendar: Calendar | null;
  /** What a new one is probably called. */
  name?: string;
  today: string;
  onClose: () => void;
  onSaved?: (calendar: Calendar) => void;
}

export function CalendarDialog({ calendar, name: given = "", today, onClose, onSaved }: CalendarDialogProps) {
  const form = useId();
  // As it was when the dialog was opened: what differs from that is what is changed.
  const [before] = useState({ name: calendar?.name ?? given, note: calendar?.note ?? "", dates: calendar?.dates ?? [] });
  const [name, setName] = useState(before.name);
  const [note, setNote] = useState(before.note);
  const [dates, setDates] = useState<readonly string[]>(before.dates);
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState<FieldProblem | null>(null);
  const [leaving, setLeaving] = useState(false);
  const { save, error, isPending } = useSaving(calendar !== null, onClose, onSaved);

  const wanted = name.trim();
  const isTaken = (useCalendars().data?.items ?? []).some((one) => one.name === wanted) && calendar === null;
  const isChanged = wanted !== before.name || note !== before.note || dates !== before.dates || text.trim() !== "";
  const fields = error instanceof ProblemError ? error.fields : {};
  const isShown = ["name", "note", "dates"].some((field) => field in fields);
  const leave = (): void => (isChanged ? setLeaving(true) : onClose());

  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    // The dialog is drawn elsewhere, but its events go on to the page.
    event.stopPropagation();
    const read = readDates(text);
    const all = inOrder([...dates, ...read.dates]);
    const problem = read.problem ?? tooMany(all.length);
    setWrong(problem);
    if (problem !== null) event.currentTarget.querySelector("textarea")?.focus();
    if (problem !== null || wanted === "" || isTaken || isPending) return;
    setDates(all);
    setText("");
    save({
      name: wanted,
      added: all.filter((date) => !before.dates.includes(date)),
      removed: before.dates.filter((date) => !all.includes(date)),
      ...(note === before.note ? {} : { note: note.trim() }),
    });
  };

  return (
    <Dialog
      open
      onOpenChange={leave}
      wide
      title={calendar === null ? "New calendar" : `Calendar ${before.name}`}
      description="Schedules that use it are planned anew as soon as its dates change."
      footer={
        <>
          <Button onClick={leave}>Cancel</Button>
          <Button type="submit" form={form} variant="primary" busy={isPending}>
            {calendar === null ? "Make calendar" : "Save calendar"}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-4">
        {error !== null && !isShown && <ProblemNote error={error} />}
        {calendar === null && (
          <TextField
            label="Name"
            hint="What timings call it, such as office."
            required
            maxLength={200}
            autoComplete="off"
            spellCheck={false}
            placeholder="office"
            error={isTaken ? `There is a calendar ${wanted} already.` : fields["name"]}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
        <TextField
          label="Note"
          hint="What these days are, for everybody who looks."
          error={fields["note"]}
          value={note}
          onChange={(event) => setNote(event.target.value)}
        />
        <DatesField
          dates={dates}
          onDates={setDates}
          text={text}
          onText={setText}
          error={wrong ?? fields["dates"] ?? null}
          onError={setWrong}
          today={today}
        />
      </form>
      <ConfirmDialog
        open={leaving}
        onOpenChange={setLeaving}
        title="Leave without saving?"
        text="What you changed here will be lost."
        action="Leave"
        danger
        onConfirm={onClose}
      />
    </Dialog>
  );
}

function tooMany(count: number): FieldProblem | null {
  if (count <= MOST_DATES) return null;
  const most = MOST_DATES.toLocaleString("en-US");
  const message = `A calendar has ${most} dates at most, and these would be ${count.toLocaleString("en-US")}.`;
  return { field: "dates", message, hint: "Take out those that have passed, or write 12-24 for every year." };
}

interface Wanted {
  name: string;
  added: string[];
  removed: string[];
  note?: string;
}

/** Sends it, and says which schedules were planned anew. */
function useSaving(isKnown: boolean, onClose: () => void, onSaved?: (calendar: Calendar) => void) {
  const make = useMakeCalendar();
  const change = useChangeCalendar();
  const say = useToast();
  const done = (calendar: Calendar | null): void => {
    // Somebody else made one of this name meanwhile: the field says so.
    if (calendar === null) return;
    const { name, replanned } = calendar;
    say({
      title: `Calendar ${name} is ${isKnown ? "saved" : "made"}`,
      text: replanned.length > 0 ? `Planned anew: ${listed(replanned)}.` : undefined,
    });
    onSaved?.(calendar);
    onClose();
  };
  const save = (wanted: Wanted): void => {
    if (isKnown) change.mutate(wanted, { onSuccess: done });
    else make.mutate({ name: wanted.name, dates: wanted.added, note: wanted.note ?? "" }, { onSuccess: done });
  };
  return { save, error: make.error ?? change.error, isPending: make.isPending || change.isPending };
}
