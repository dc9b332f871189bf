import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useMay } from "@/api/queries/me";
import { useRetryRun } from "@/api/queries/runs";
import type { Run } from "@/api/types";
import { Button } from "@/components/Button";
import { useProblemToast, useToast } from "@/components/Toast";
import { hasEnded } from "@/components/stateLook";
import { useUrlState } from "@/state/urlState";
import { CancelDialog } from "./CancelDialog";

/** Cancel while it is active, retry when it has ended. A retry is a new run, and the page goes there. */
export function RunActions({ run }: { run: Run }) {
  const may = useMay("operator");
  const isCancelling = run.cancelling !== null;
  const retry = useRetryRun();
  const navigate = useNavigate();
  const say = useToast();
  const tell = useProblemToast();
  const [search, setSearch] = useUrlState();
  const [asking, setAsking] = useState(false);
  // The palette asks by the address, once.
  const wanted = search["cancel"] === "1";
  useEffect(() => {
    if (!wanted) return;
    setSearch({ cancel: undefined });
    setAsking(may.allowed && !hasEnded(run.state));
  }, [wanted, setSearch, may.allowed, run.state]);
  const pressRetry = (): void =>
    retry.mutate(
      { id: run.id },
      {
        onSuccess: (made) => {
          say({ title: `Run ${made.id} is queued`, text: `It does the work of run ${run.id} again.` });
          void navigate({ to: "/runs/$id", params: { id: String(made.id) } });
        },
        onError: tell("The run could not be retried"),
      },
    );

  return (
    <>
      {hasEnded(run.state) ? (
        <Button
          icon="refresh"
          variant={run.state === "failed" ? "primary" : "secondary"}
          why={may.reason}
          busy={retry.isPending}
          onClick={pressRetry}
        >
          Retry
        </Button>
      ) : (
        <Button
          icon="stop"
          why={may.reason ?? (isCancelling ? "It was already told to stop." : undefined)}
          onClick={() => setAsking(true)}
        >
          {isCancelling ? "Cancelling…" : "Cancel"}
        </Button>
      )}
      {/* Also when the run ends under it: whoever types a reason must not go on typing on the page. */}
      {asking && <CancelDialog run={run} onClose={() => setAsking(false)} />}
    </>
  );
}
