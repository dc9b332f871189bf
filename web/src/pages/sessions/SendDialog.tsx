/** Puts a message into a session, new or not: to a task, or to an agent. */

import { type FormEvent, useId, useState } from "react";
import { ProblemError } from "@/api/client";
import { useMay } from "@/api/queries/me";
import { useSendMessage } from "@/api/queries/sessions";
import { Button } from "@/components/Button";
import { Command } from "@/components/Command";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { Dialog } from "@/components/Dialog";
import { TextArea, TextField } from "@/components/Field";
import { ProblemNote } from "@/components/ProblemNote";
import { Segmented } from "@/components/Segmented";
import { Select } from "@/components/Select";
import { useToast } from "@/components/Toast";
import { type Draft, draftMessage, NEW_DRAFT, sendCommand } from "@/pages/sessions/draft";
import { MODES, modeOf, SEND_TO_AGENT } from "@/pages/sessions/recipient";
import { RecipientFields } from "@/pages/sessions/RecipientFields";

interface SendDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  /** The session; without it, it is asked for. */
  session?: string;
}

export function SendDialog({ open, onOpenChange, session }: SendDialogProps) {
  const form = useId();
  const send = useSendMessage();
  const admin = useMay("admin", SEND_TO_AGENT);
  const [draft, setDraft] = useState<Draft>({ ...NEW_DRAFT, session: session ?? "" });
  const [asking, setAsking] = useState(false);
  const close = (): void => {
    send.reset();
    setDraft({ ...NEW_DRAFT, session: session ?? "" });
    setAsking(false);
    onOpenChange(false);
  };
  const leave = (): void => (draft.text.trim() === "" ? close() : setAsking(true));
  const why = draft.to === "agent" ? admin.reason : undefined;
  return (
    <Dialog
      open={open}
      onOpenChange={leave}
      title={session === undefined ? "Send a message" : `Send to ${session}`}
      footer={
        <>
          <Button onClick={leave}>Cancel</Button>
          <Button type="submit" form={form} variant="primary" icon="send" busy={send.isPending} why={why}>
            Send
          </Button>
        </>
      }
    >
      <SendForm
        id={form}
        isNew={session === undefined}
        draft={draft}
        onDraft={(changes) => setDraft((before) => ({ ...before, ...changes }))}
        send={send}
        why={why}
        onSent={close}
      />
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title="Leave without sending?"
        text="Your message will be lost."
        action="Leave"
        danger
        onConfirm={close}
      />
    </Dialog>
  );
}

interface SendFormProps {
  id: string;
  /** The session is asked for. */
  isNew: boolean;
  draft: Draft;
  onDraft: (changes: Partial<Draft>) => void;
  send: ReturnType<typeof useSendMessage>;
  /** Why it cannot be sent. */
  why: string | undefined;
  onSent: () => void;
}

const PLACED = ["key", "task", "payload", "mode", "project", "agent.model", "agent.cli", "agent.system"];

function SendForm({ id, isNew, draft, onDraft, send, why, onSent }: SendFormProps) {
  const say = useToast();
  const fields = send.error instanceof ProblemError ? send.error.fields : {};
  const isPlaced = PLACED.some((name) => name in fields);
  const isAgent = draft.to === "agent";

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (why !== undefined) return;
    send.mutate(
      { key: draft.session.trim(), message: draftMessage(draft) },
      {
        onSuccess: (run) => {
          say({ title: `Sent: run ${run.id} carries the message` });
          onSent();
        },
      },
    );
  };

  return (
    <form id={id} onSubmit={submit} className="flex flex-col gap-4">
      {send.error !== null && !isPlaced && <ProblemNote error={send.error} />}
      {isNew && (
        <TextField
          label="Session"
          hint="Any key, such as dm:42. The first message creates the session."
          required
          error={fields["key"]}
          value={draft.session}
          onChange={(event) => onDraft({ session: event.target.value })}
        />
      )}
      <Segmented
        label="Who gets it"
        value={draft.to}
        options={[
          { value: "task", label: "Task", icon: "gear" },
          { value: "agent", label: "Agent", icon: "bolt" },
        ]}
        onChange={(to) => onDraft({ to })}
      />
      <RecipientFields draft={draft} onDraft={onDraft} fields={fields} />
      <TextArea
        label={isAgent ? "Prompt" : "Payload"}
        hint={isAgent ? undefined : "Read as JSON if it is valid JSON, otherwise as text."}
        required
        mono={!isAgent}
        rows={4}
        error={fields["payload"]}
        value={draft.text}
        onChange={(event) => onDraft({ text: event.target.value })}
      />
      <Select
        label="Mode"
        options={MODES}
        value={draft.mode}
        error={fields["mode"]}
        onChange={(next) => onDraft({ mode: modeOf(next) })}
      />
      {why !== undefined && (
        <p role="note" className="text-sm text-muted">
          {why}
        </p>
      )}
      <div className="flex flex-col gap-1 text-xs text-muted">
        On the command line:
        <Command text={sendCommand(draft)} />
      </div>
    </form>
  );
}
