/** Puts a message into a session. */

import { type FormEvent, useId, useState } from "react";
import { ProblemError } from "@/api/client";
import { useSendMessage } from "@/api/queries/sessions";
import { useTasks } from "@/api/queries/tasks";
import type { NewMessage } from "@/api/types";
import { Button } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { Dialog } from "@/components/Dialog";
import { TextArea, TextField } from "@/components/Field";
import { ProblemNote } from "@/components/ProblemNote";
import { Select } from "@/components/Select";
import { useToast } from "@/components/Toast";

const MODES = [
  { value: "queue", label: "Queue: wait for its turn" },
  { value: "followup", label: "Follow up: wait until nothing is under way, and run alone" },
  { value: "interrupt", label: "Interrupt: stop what is under way, and go next" },
] as const;

type Mode = (typeof MODES)[number]["value"];

/** JSON where it is JSON, else text: as on the command line. */
export function readPayload(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

interface SendDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  /** The session; without it, it is asked for. */
  session?: string;
}

export function SendDialog({ open, onOpenChange, session }: SendDialogProps) {
  const form = useId();
  const send = useSendMessage();
  const [isTyped, setIsTyped] = useState(false);
  const [asking, setAsking] = useState(false);
  const close = (): void => {
    send.reset();
    setIsTyped(false);
    setAsking(false);
    onOpenChange(false);
  };
  const leave = (): void => (isTyped ? setAsking(true) : close());
  return (
    <Dialog
      open={open}
      onOpenChange={leave}
      title={session === undefined ? "Send a message" : `Send to ${session}`}
      footer={
        <>
          <Button onClick={leave}>Cancel</Button>
          <Button type="submit" form={form} variant="primary" icon="send" busy={send.isPending}>
            Send
          </Button>
        </>
      }
    >
      <SendForm id={form} session={session} send={send} onTyped={setIsTyped} onSent={close} />
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
  session?: string;
  send: ReturnType<typeof useSendMessage>;
  /** Whether there is a payload that would be lost. */
  onTyped: (isTyped: boolean) => void;
  onSent: () => void;
}

function SendForm({ id, session, send, onTyped, onSent }: SendFormProps) {
  const tasks = useTasks().data?.items ?? [];
  const list = useId();
  const [key, setKey] = useState(session ?? "");
  const [task, setTask] = useState("");
  const [text, setText] = useState("");
  const [mode, setMode] = useState<Mode>("queue");
  const say = useToast();
  const fields = send.error instanceof ProblemError ? send.error.fields : {};
  const isPlaced = ["key", "task", "payload", "mode"].some((name) => name in fields);

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const message: NewMessage = { task: task.trim(), payload: readPayload(text), mode };
    send.mutate(
      { key: key.trim(), message },
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
      {session === undefined && (
        <TextField
          label="Session"
          hint="Any key, such as dm:42. The first message creates the session."
          required
          error={fields["key"]}
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
      )}
      <TextField
        label="Task"
        hint="It is called with the messages as a list, payloads."
        required
        list={list}
        autoComplete="off"
        error={fields["task"]}
        value={task}
        onChange={(event) => setTask(event.target.value)}
      />
      <datalist id={list}>
        {tasks.map((each) => (
          <option key={each.name} value={each.name} />
        ))}
      </datalist>
      <TextArea
        label="Payload"
        hint="Read as JSON if it is valid JSON, otherwise as text."
        required
        mono
        rows={4}
        error={fields["payload"]}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          onTyped(event.target.value.trim() !== "");
        }}
      />
      <Select
        label="Mode"
        options={MODES}
        value={mode}
        error={fields["mode"]}
        onChange={(next) => setMode(MODES.find((each) => each.value === next)?.value ?? "queue")}
      />
    </form>
  );
}
