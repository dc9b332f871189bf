import { type ReactNode, useState } from "react";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { TextField } from "@/components/Field";

interface Props {
  /** `backup`, or `3 schedules`. */
  what: string;
  several?: boolean;
  onClose: () => void;
  onPause: (note: string | undefined) => Promise<unknown>;
  /** What else is asked. */
  children?: ReactNode;
}

/** Asks before schedules are off for a while, with a reason that everybody can read. There only while it is asked: a
 *  reason is not kept for the next time. */
export function PauseDialog({ what, several = false, onClose, onPause, children }: Props) {
  const [note, setNote] = useState("");
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={`Pause ${what}?`}
      text={
        several
          ? "They will be off, without new due times, until somebody enables them again. What runs goes on; what waits for another attempt is cancelled."
          : "It will be off, without new due times, until somebody enables it again. A run under way goes on."
      }
      action={several ? "Pause schedules" : "Pause schedule"}
      onConfirm={() => onPause(note.trim() === "" ? undefined : note.trim())}
    >
      <TextField
        label="Reason (optional)"
        placeholder="the server moves on Friday"
        value={note}
        maxLength={500}
        onChange={(event) => setNote(event.target.value)}
      />
      {children}
    </ConfirmDialog>
  );
}
