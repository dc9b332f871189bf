/** "Why didn't it run?": what became of the due time at or before a moment, read from the ledger. */

import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useWhy } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { QueryView } from "@/components/QueryView";
import { Skeleton } from "@/components/Skeleton";
import { RunStateBadge } from "@/components/RunStateBadge";
import { Time } from "@/components/Time";
import { useNow } from "@/state/ticker";
import { useZone } from "@/state/zone";
import { inZone } from "@/time/inZone";

export function WhyDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const [text, setText] = useState("");
  const at = text === "" ? null : new Date(text).toISOString();
  const query = useWhy(schedule.name, at);
  const zone = useZone().resolve(schedule.zone);
  const now = useNow(60_000);
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Why didn’t it run?"
      description={`What became of a due time of ${schedule.name}.`}
      footer={<Button onClick={onClose}>Close</Button>}
    >
      <div className="flex flex-col gap-4">
        <TextField
          label="At (your time)"
          hint="Shows the due time at or just before this. Leave it empty for the latest one."
          type="datetime-local"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <QueryView query={query} skeleton={<Skeleton className="h-16 w-full" />}>
          {(why) => (
            <div
              role="status"
              className="flex flex-col gap-2 rounded-lg border border-line bg-sunken px-4 py-3 text-sm"
            >
              <p className="font-medium">{inZone(why.answer, zone, now)}</p>
              {why.due_at !== null && (
                <p className="text-muted">
                  Due <Time at={why.due_at} zone={schedule.zone} seconds />
                </p>
              )}
              {why.facts.length > 0 && (
                <ul className="list-disc pl-4 text-muted">
                  {why.facts.map((fact) => (
                    <li key={fact}>{inZone(fact, zone, now)}</li>
                  ))}
                </ul>
              )}
              {why.run !== null && (
                <Link
                  to="/runs/$id"
                  params={{ id: String(why.run.id) }}
                  className="flex w-fit items-center gap-2 font-medium text-accent hover:underline"
                >
                  Run {why.run.id} <RunStateBadge run={why.run} />
                </Link>
              )}
            </div>
          )}
        </QueryView>
      </div>
    </Dialog>
  );
}
