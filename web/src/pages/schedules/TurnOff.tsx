import { useState } from "react";
import { useDisable } from "@/api/queries/schedules";
import { Switch } from "@/components/Switch";
import { useToast } from "@/components/Toast";
import { PauseDialog } from "./PauseDialog";

/** Pauses a schedule, after a question. */
export function TurnOff({ name, onDone }: { name: string; onDone: () => void }) {
  const disable = useDisable();
  const say = useToast();
  const [keeps, setKeeps] = useState(false);
  return (
    <PauseDialog
      what={name}
      onClose={onDone}
      onPause={async (note) => {
        await disable.mutateAsync({ ref: name, note, keepRetries: keeps });
        say({ title: `${name} is off` });
      }}
    >
      <div className="mt-3 flex items-center gap-2 text-sm">
        <Switch checked={keeps} onChange={setKeeps} label="Let retries go on" />
        Let a run that waits for another attempt go on; else it is cancelled
      </div>
    </PauseDialog>
  );
}
