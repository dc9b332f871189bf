/** Asks before a run is cancelled, and for a reason. A run that ends meanwhile says so here: what is typed stays. */

import { useState } from "react";
import { useTasks } from "@/api/queries/tasks";
import { useCancelRun } from "@/api/queries/runs";
import type { Run } from "@/api/types";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { TextField } from "@/components/Field";
import { useToast } from "@/components/Toast";
import { hasEnded } from "@/components/stateLook";

/** What becomes of work that runs: nobody can end a thread. */
function useStop(run: Run): string {
  const tasks = useTasks().data?.items;
  if (run.work.kind === "http") return "The request is given up; what it did on the other side stays done.";
  if (run.work.kind === "check_in") return "The machine that does the work is not told.";
  if (run.work.kind !== "function") return "The work is told to stop, and is ended if it does not.";
  const kind = tasks?.find((task) => task.name === run.task)?.kind;
  if (kind === "process") return "The work is told to stop, and its process is ended if it does not.";
  if (kind === "async") return "The coroutine is cancelled at its next await; one that goes on all the same cannot be ended.";
  return "The task is asked to stop. One that does not look at run.cancelled is given up, and goes on to its end: nobody can end a thread.";
}

interface CancelDialogProps {
  run: Run;
  onClose: () => void;
}

export function CancelDialog({ run, onClose }: CancelDialogProps) {
  const [reason, setReason] = useState("");
  const cancel = useCancelRun();
  const say = useToast();
  const stop = useStop(run);
  const of = run.schedule ?? run.task;
  const ended = hasEnded(run.state) ? `Run ${run.id} has ended in the meantime: ${run.state}.` : undefined;
  const words = run.state === "running" ? `${stop} The run is not retried.` : "The run will not be started.";
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={of === null ? `Cancel run ${run.id}?` : `Cancel run ${run.id} of ${of}?`}
      text={<span role="status">{ended ?? words}</span>}
      action="Cancel run"
      danger
      why={ended}
      onConfirm={async () => {
        await cancel.mutateAsync({ id: run.id, reason: reason.trim() === "" ? undefined : reason.trim() });
        say({ title: `Run ${run.id} is being cancelled` });
      }}
    >
      <TextField
        label="Reason (optional)"
        value={reason}
        maxLength={500}
        onChange={(event) => setReason(event.target.value)}
      />
    </ConfirmDialog>
  );
}
