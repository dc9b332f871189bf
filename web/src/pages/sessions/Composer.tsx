/** The box to type in, under the conversation. It writes to whoever got the last message; whoever may not is told why. */

import type { FormEvent, KeyboardEvent } from "react";
import { useMay } from "@/api/queries/me";
import { Button } from "@/components/Button";
import { TextArea } from "@/components/Field";
import { Icon } from "@/components/Icon";
import { ProblemNote } from "@/components/ProblemNote";
import { Select } from "@/components/Select";
import { type ModeChoice, MODES, modeOf, type Recipient, recipientName, SEND_TO_AGENT } from "@/pages/sessions/recipient";

const SHORT_MODES = MODES.map(({ value, short }) => ({ value, label: short }));
const MOST_ROWS = 8;

interface ComposerProps {
  to: Recipient;
  text: string;
  onText: (text: string) => void;
  mode: ModeChoice;
  onMode: (mode: ModeChoice) => void;
  /** Why the last message could not be sent. */
  error: unknown;
  onSend: () => void;
  onOther: () => void;
}

export function Composer(props: ComposerProps) {
  const isAgent = props.to.task === undefined;
  const { reason: why } = useMay(isAgent ? "admin" : "operator", isAgent ? SEND_TO_AGENT : "send a message");
  if (why === undefined) return <Box {...props} />;
  return (
    <p role="note" className="flex gap-2 border-t border-line px-4 py-3 text-sm text-muted">
      <Icon name="info" size={14} className="mt-1" />
      <span>{why}</span>
    </p>
  );
}

function Box({ to, text, onText, mode, onMode, error, onSend, onOther }: ComposerProps) {
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim() !== "") onSend();
  };
  const pressed = (event: KeyboardEvent): void => {
    // While a word is being composed, Enter chooses it.
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) submit(event);
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-2 border-t border-line p-3 sm:px-4">
      {error !== null && <ProblemNote error={error} />}
      <TextArea
        label="Message"
        hideLabel
        placeholder="Write a message. Enter sends it, Shift+Enter begins a new line."
        rows={Math.min(MOST_ROWS, Math.max(2, text.split("\n").length))}
        value={text}
        onChange={(event) => onText(event.target.value)}
        onKeyDown={pressed}
      />
      <div className="flex flex-wrap items-center gap-2">
        <p className="min-w-0 flex-1 text-xs break-words text-muted max-sm:basis-full">
          To {recipientName(to)}.{" "}
          <button type="button" onClick={onOther} className="rounded font-medium text-accent hover:underline">
            Send to another…
          </button>
        </p>
        <Select
          label="Mode"
          hideLabel
          className="w-36 max-sm:flex-1"
          options={SHORT_MODES}
          value={mode}
          onChange={(next) => onMode(modeOf(next))}
        />
        <Button type="submit" variant="primary" icon="send" why={text.trim() === "" ? "Write something first." : undefined}>
          Send
        </Button>
      </div>
    </form>
  );
}
