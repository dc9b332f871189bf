import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ProblemError } from "@/api/client";
import { useMay } from "@/api/queries/me";
import { useTrigger } from "@/api/queries/schedules";
import type { Run, Schedule } from "@/api/types";
import { Button } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { useProblemToast, useToast } from "@/components/Toast";

/** Starts a run by hand. While another is active it is refused, and can be forced. */
export function RunNow({ schedule }: { schedule: Schedule }) {
  const may = useMay("operator");
  const trigger = useTrigger();
  const say = useToast();
  const tell = useProblemToast();
  const navigate = useNavigate();
  const [refused, setRefused] = useState<string | null>(null);

  function started(run: Run): void {
    say({
      title: `Run ${run.id} is queued`,
      tone: "good",
      action: { label: "Show run", run: () => void navigate({ to: "/runs/$id", params: { id: String(run.id) } }) },
    });
  }

  return (
    <>
      <Button
        variant="primary"
        icon="play"
        why={schedule.work.kind === "check_in" ? "A machine does its work, and checks in." : may.reason}
        busy={trigger.isPending}
        onClick={() =>
          trigger.mutate(
            { ref: schedule.name },
            {
              onSuccess: started,
              onError: (error) => {
                if (error instanceof ProblemError && error.status === 409) setRefused(error.message);
                else tell(`${schedule.name} could not be run`)(error);
              },
            },
          )
        }
      >
        Run now
      </Button>
      <ConfirmDialog
        open={refused !== null}
        onOpenChange={() => setRefused(null)}
        title={`Run ${schedule.name} anyway?`}
        text={refused ?? ""}
        action="Run anyway"
        onConfirm={async () => started(await trigger.mutateAsync({ ref: schedule.name, force: true }))}
      />
    </>
  );
}
