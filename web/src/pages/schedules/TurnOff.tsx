import { useDisable } from "@/api/queries/schedules";
import { useToast } from "@/components/Toast";
import { PauseDialog } from "./PauseDialog";

/** Pauses a schedule, after a question. */
export function TurnOff({ name, onDone }: { name: string; onDone: () => void }) {
  const disable = useDisable();
  const say = useToast();
  return (
    <PauseDialog
      what={name}
      onClose={onDone}
      onPause={async (note) => {
        await disable.mutateAsync({ ref: name, note });
        say({ title: `${name} is off` });
      }}
    />
  );
}
