/** Says that somebody sees to an incident. */

import { useState } from "react";
import { useAckIncident } from "@/api/queries/incidents";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { TextField } from "@/components/Field";

interface AckDialogProps {
  id: number;
  subject: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

export function AckDialog({ id, subject, open, onOpenChange }: AckDialogProps) {
  const [note, setNote] = useState("");
  const ack = useAckIncident();
  return (
    <ConfirmDialog
      open={open}
      onOpenChange={onOpenChange}
      title={`Acknowledge the incident of ${subject}?`}
      text="Nothing more is told of it until it recovers."
      action="Acknowledge"
      onConfirm={() => ack.mutateAsync({ id, note: note.trim() })}
    >
      <TextField
        label="Note"
        hint="What is done about it."
        value={note}
        maxLength={10_000}
        onChange={(event) => setNote(event.target.value)}
      />
    </ConfirmDialog>
  );
}
