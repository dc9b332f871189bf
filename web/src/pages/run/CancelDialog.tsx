/** Asks before a run is cancelled, and for a reason. A run that ends meanwhile says so here: what is typed stays. */

import { useState } from "react";
import { useCancelRun } from "@/api/queries/runs";
import type { Run } from "@/api/types";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { TextField } from "@/components/Field";
import { useToast } from "@/components/Toast";
import { hasEnded } from "@/components/stateLook";

interface CancelDialogProps {
  run: Run;
  onClose: () => void;
}

export function CancelDialog({ run, onClose }: CancelDialogProps) {
  const [reason, setReason] = useState("");
  const cancel = useCancelRun();
  const say = useToast();
  const ended = hasEnded(run.state) ? `Run ${run.id} has ended in the meantime: ${run.state}.` : undefined;
  const words = run.state === "running" ? "The work is told to stop, and is ended if it does not. The run is not retried." : "The run will not be started.";
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={`Cancel run ${run.id}?`}
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
