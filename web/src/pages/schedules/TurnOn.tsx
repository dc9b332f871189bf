import { useEffect, useRef } from "react";
import { ProblemError } from "@/api/client";
import { useEnable } from "@/api/queries/schedules";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { ProblemNote } from "@/components/ProblemNote";
import { useToast } from "@/components/Toast";

/** Enables a schedule, once; what stands in the way is told in a dialog. */
export function TurnOn({ name, onDone }: { name: string; onDone: () => void }) {
  const { mutateAsync, error } = useEnable();
  const say = useToast();
  const asked = useRef(false);
  useEffect(() => {
    if (asked.current) return;
    asked.current = true;
    // A banner that offered it is gone before the answer is told: what follows must not hang on this component.
    mutateAsync({ ref: name }).then(
      () => {
        say({ title: `${name} is on` });
        onDone();
      },
      () => undefined, // `error` has it
    );
  }, [mutateAsync, name, onDone, say]);
  if (error === null) return null;
  const checks = error instanceof ProblemError ? Object.keys(error.problem.checks ?? {}).length : 0;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onDone()}
      title={`${name} could not be enabled`}
      description={checks > 0 ? "These checks failed. Fix the problems, then enable the schedule again." : undefined}
      footer={<Button onClick={onDone}>Close</Button>}
    >
      <ProblemNote error={error} />
    </Dialog>
  );
}
