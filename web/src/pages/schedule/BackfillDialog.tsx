/** Runs the due times of the past: first a look at what would be run, then the runs. */

import { type FormEvent, useId, useState } from "react";
import { type Backfill, useBackfill } from "@/api/queries/schedules";
import type { BackfillAnswer, Schedule } from "@/api/types";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { ProblemNote } from "@/components/ProblemNote";
import { Time } from "@/components/Time";
import { useToast } from "@/components/Toast";
import { counted } from "@/time/format";

interface Props {
  schedule: Schedule;
  onClose: () => void;
}

const SHOWN = 12;

/** `2026-11-16T09:00` of a date field, in the browser's zone, for a moment. */
function fieldText(moment: Date): string {
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

export function BackfillDialog({ schedule, onClose }: Props) {
  const [from, setFrom] = useState(() => fieldText(new Date(Date.now() - 86_400_000)));
  const [until, setUntil] = useState(() => fieldText(new Date()));
  const [all, setAll] = useState(false);
  const [preview, setPreview] = useState<BackfillAnswer | null>(null);
  const backfill = useBackfill(schedule.name);
  const say = useToast();
  const ready = from !== "" && until !== "";

  const form = useId();
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (backfill.isPending || !ready) return;
    if (preview === null) send(true);
    else if (preview.due.length > 0) send(false);
  }
  function changed(set: () => void): void {
    set();
    setPreview(null);
    backfill.reset();
  }
  function send(dry_run: boolean): void {
    const wanted: Backfill = { from: new Date(from).toISOString(), until: new Date(until).toISOString(), all, dry_run };
    backfill.mutate(wanted, {
      onSuccess: (answer) => {
        if (dry_run) {
          setPreview(answer);
          return;
        }
        say({ title: `${counted(answer.runs.length, "run")} queued`, text: `Backfill of ${schedule.name}` });
        onClose();
      },
    });
  }

  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Backfill ${schedule.name}`}
      description="Runs the due times of a period in the past, oldest first."
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          {preview === null ? (
            <Button
              variant="primary"
              busy={backfill.isPending}
              why={ready ? undefined : "Enter both times."}
              type="submit"
              form={form}
            >
              Preview
            </Button>
          ) : (
            <Button
              variant="primary"
              busy={backfill.isPending}
              why={preview.due.length > 0 ? undefined : "There is nothing to run."}
              type="submit"
              form={form}
            >
              Run {counted(preview.due.length, "due time")}
            </Button>
          )}
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3">
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField
            label="From (your time)"
            type="datetime-local"
            value={from}
            onChange={(event) => changed(() => setFrom(event.target.value))}
          />
          <TextField
            label="Until (your time)"
            type="datetime-local"
            value={until}
            onChange={(event) => changed(() => setUntil(event.target.value))}
          />
        </div>
        <label className="flex items-start gap-2 text-sm">
          <input
            type="checkbox"
            checked={all}
            onChange={(event) => changed(() => setAll(event.target.checked))}
            className="mt-1 size-4 accent-accent"
          />
          <span>
            Include due times that have succeeded or are active
            <span className="block text-xs text-muted">They are left out otherwise.</span>
          </span>
        </label>
        {backfill.error !== null && <ProblemNote error={backfill.error} />}
        {preview !== null && <Preview answer={preview} zone={schedule.zone} />}
      </form>
    </Dialog>
  );
}

function Preview({ answer, zone }: { answer: BackfillAnswer; zone: string }) {
  const shown = answer.due.slice(0, SHOWN);
  return (
    <div role="status" className="rounded-lg border border-line bg-sunken px-3 py-2.5 text-sm">
      <p className="font-medium">
        {answer.due.length === 0 ? "There are no due times to run" : `${counted(answer.due.length, "due time")} will be run`}
        {answer.left_out > 0 && (
          <span className="font-normal text-muted">, {answer.left_out.toLocaleString("en-US")} left out</span>
        )}
      </p>
      <ul className="mt-1 grid grid-cols-2 gap-x-4 text-xs text-muted sm:grid-cols-3">
        {shown.map((at) => (
          <li key={at}>
            <Time at={at} zone={zone} seconds />
          </li>
        ))}
      </ul>
      {answer.due.length > SHOWN && (
        <p className="mt-1 text-xs text-muted">and {(answer.due.length - SHOWN).toLocaleString("en-US")} more</p>
      )}
    </div>
  );
}
