/** The conversation of a session, and the box to go on with it. */

import { useState } from "react";
import { useMay } from "@/api/queries/me";
import { itemsOf } from "@/api/queries/pages";
import { useRun } from "@/api/queries/runs";
import { useMessages } from "@/api/queries/sessions";
import type { Run } from "@/api/types";
import { Button } from "@/components/Button";
import { classes, FILL } from "@/components/classes";
import { EmptyState } from "@/components/EmptyState";
import { QueryView } from "@/components/QueryView";
import { endOf } from "@/components/rowsEnd";
import { Composer } from "@/pages/sessions/Composer";
import { sendCommand } from "@/pages/sessions/draft";
import { lastTalk, messageTo, type ModeChoice, type Recipient, recipientOf } from "@/pages/sessions/recipient";
import { Thread } from "@/pages/sessions/Thread";
import { threadOf } from "@/pages/sessions/entries";
import { type Outbox, useOutbox } from "@/pages/sessions/useOutbox";
import { useDraft } from "@/state/drafts";

/** What is written and not sent yet. */
export interface Writing extends Outbox {
  text: string;
  setText: (text: string) => void;
  mode: ModeChoice;
  setMode: (mode: ModeChoice) => void;
}

export function useWriting(session: string): Writing {
  const [text, change] = useDraft(`session ${session}`);
  const [mode, setMode] = useState<ModeChoice>("");
  const outbox = useOutbox(session, (returned) =>
    // Something may have been written meanwhile.
    change((written) => (written === "" ? returned : `${returned}\n${written}`)),
  );
  return { ...outbox, text, setText: (next) => change(() => next), mode, setMode };
}

interface ConversationProps {
  session: string;
  writing: Writing;
  /** Opens the dialog, which asks who is to get a message. */
  onOther: () => void;
}

export function Conversation({ session, writing, onOther }: ConversationProps) {
  const messages = useMessages(session);
  return (
    <section className={classes(FILL, "rounded-lg border border-line bg-surface")}>
      <QueryView query={messages}>
        {(data) => {
          const runs = itemsOf(data);
          if (runs.length === 0) return <Nothing session={session} onSend={onOther} />;
          return (
            <>
              <Thread entries={threadOf(runs)} unsent={writing.unsent} earlier={endOf(messages)} />
              <Reply session={session} runs={runs} writing={writing} onOther={onOther} />
            </>
          );
        }}
      </QueryView>
    </section>
  );
}

function Reply({ session, runs, writing, onOther }: ConversationProps & { runs: readonly Run[] }) {
  const to = useRecipient(session, runs);
  if (to === undefined) return null;
  if (to === null) return <Nobody onSend={onOther} />;
  const { text, setText, mode, setMode, error, send } = writing;
  const sendText = (): void => {
    send(text, messageTo(to, text, mode));
    setText("");
  };
  return (
    <Composer {...{ to, text, mode, error, onOther }} onText={setText} onMode={setMode} onSend={sendText} />
  );
}

/** Who got the last message: null if nobody did, undefined while that is being loaded. */
function useRecipient(session: string, runs: readonly Run[]): Recipient | null | undefined {
  const last = lastTalk(runs, session);
  // A list has only the beginning of long work, and the options of an agent may be behind that.
  const isCut = last?.cut?.includes("work") ?? false;
  const whole = useRun(last?.id ?? 0, isCut).data;
  if (last === undefined) return null;
  if (isCut && whole === undefined) return undefined;
  return recipientOf(isCut && whole !== undefined ? whole : last, session);
}

function Nobody({ onSend }: { onSend: () => void }) {
  return (
    <div className="flex justify-end border-t border-line p-3 sm:px-4">
      <SendButton onSend={onSend} />
    </div>
  );
}

function Nothing({ session, onSend }: { session: string; onSend: () => void }) {
  return (
    <EmptyState
      icon="inbox"
      title="No messages, or none that are still kept"
      text="Send one here, or on the command line:"
      command={sendCommand({ session })}
      action={<SendButton onSend={onSend} />}
    />
  );
}

function SendButton({ onSend }: { onSend: () => void }) {
  const may = useMay("operator");
  return (
    <Button variant="primary" icon="send" why={may.reason} onClick={onSend}>
      Send a message
    </Button>
  );
}
