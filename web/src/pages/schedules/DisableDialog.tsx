import { useState } from "react";
import { useDisable } from "@/api/queries/schedules";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { TextField } from "@/components/Field";
import { useToast } from "@/components/Toast";

interface Props {
  name: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

/** Switches a schedule off, with a reason that everybody can read. */
export function DisableDialog({ name, open, onOpenChange }: Props) {
  const [note, setNote] = useState("");
  const disable = useDisable();
  const say = useToast();
  return (
    <ConfirmDialog
      open={open}
      onOpenChange={onOpenChange}
      title={`Switch ${name} off?`}
      text="It gets no new due times until somebody switches it on again. A run that is under way goes on."
      action="Switch off"
      onConfirm={async () => {
        await disable.mutateAsync({ ref: name, note: note.trim() === "" ? undefined : note.trim() });
        say({ title: `${name} is off` });
      }}
    >
      <TextField
        label="Reason (optional)"
        placeholder="the server moves on Friday"
        value={note}
        maxLength={500}
        onChange={(event) => setNote(event.target.value)}
      />
    </ConfirmDialog>
  );
}
