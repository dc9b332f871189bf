/** Where the machine of a check-in calls: made here, and shown once. */

import { useState } from "react";
import { ProblemError } from "@/api/client";
import { mounted } from "@/api/mount";
import { useMay } from "@/api/queries/me";
import { usePingKey } from "@/api/queries/schedules";
import { Button } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { CopyButton } from "@/components/CopyButton";
import { useProblemToast } from "@/components/Toast";

export function PingAddress({ schedule }: { schedule: string }) {
  const may = useMay("operator");
  const make = usePingKey(schedule);
  const tell = useProblemToast();
  const [hasOne, setHasOne] = useState(false);
  const address = make.data === undefined ? null : window.location.origin + mounted(make.data.path);

  function ask(): void {
    make.mutate(false, {
      onError: (error) => {
        if (error instanceof ProblemError && error.problem.status === 409) setHasOne(true);
        else tell("There is no ping address")(error);
      },
    });
  }

  return (
    <div className="mt-3 flex flex-col items-start gap-2">
      {address !== null && (
        <p className="flex w-full min-w-0 items-center gap-2 rounded-md border border-line bg-sunken px-2 py-1">
          <code className="min-w-0 flex-1 break-all font-mono text-xs">{address}</code>
          <CopyButton text={address} label="Copy the ping address" />
        </p>
      )}
      {address !== null && <p className="text-xs text-muted">It is a secret, and is shown only now.</p>}
      <Button size="small" why={may.reason} busy={make.isPending} onClick={ask}>
        Make its ping address
      </Button>
      <ConfirmDialog
        open={hasOne}
        onOpenChange={setHasOne}
        title="Make another ping address?"
        text="It has one, which was shown when it was made. The machine that uses it must be given the new one."
        action="Make another"
        onConfirm={() => make.mutateAsync(true)}
      />
    </div>
  );
}
