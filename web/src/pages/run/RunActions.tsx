import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "@/api/queries/me";
import { useCancelRun, useIsCancelling, useRetryRun } from "@/api/queries/runs";
import type { Run } from "@/api/types";
import { Button } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { TextField } from "@/components/Field";
import { useProblemToast, useToast } from "@/components/Toast";
import { hasEnded } from "@/components/stateLook";

/** Cancel while it is active, retry when it has ended. A retry is a new run, and the page goes there. */
export function RunActions({ run }: { run: Run }) {
  const may = useMay("operator");
  const cancel = useCancelRun();
  const isCancelling = useIsCancelling(run);
  const retry = useRetryRun();
  const navigate = useNavigate();
  const say = useToast();
  const tell = useProblemToast();
  const [asking, setAsking] = useState(false);
  const [reason, setReason] = useState("");

  if (hasEnded(run.state)) {
    return (
      <Button
        icon="refresh"
        variant={run.state === "failed" ? "primary" : "secondary"}
        why={may.reason}
        busy={retry.isPending}
        onClick={() =>
          retry.mutate(
            { id: run.id },
            {
              onSuccess: (made) => {
                say({ title: `Run ${made.id} is queued`, text: `It does the work of run ${run.id} again.` });
                void navigate({ to: "/runs/$id", params: { id: String(made.id) } });
              },
              onError: tell("Not retried"),
            },
          )
        }
      >
        Retry
      </Button>
    );
  }
  return (
    <>
      <Button
        icon="stop"
        why={may.reason ?? (isCancelling ? "It was told to stop." : undefined)}
        onClick={() => setAsking(true)}
      >
        {isCancelling ? "Cancelling…" : "Cancel"}
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={`Cancel run ${run.id}?`}
        text={
          run.state === "running" ? "The work is told to stop, and ended if it does not." : "It will not be started."
        }
        action="Cancel the run"
        danger
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
    </>
  );
}
