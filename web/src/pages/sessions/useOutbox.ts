/** Messages on their way: one after the other, in the order written. What cannot be sent comes back. */

import { useRef, useState } from "react";
import { useSendMessage } from "@/api/queries/sessions";
import type { NewMessage } from "@/api/types";

interface Outgoing {
  text: string;
  message: NewMessage;
}

export interface Outbox {
  /** Texts that the server has not taken yet. */
  unsent: readonly string[];
  /** Why the last one could not be sent. */
  error: unknown;
  send: (text: string, message: NewMessage) => void;
}

/** `onReturned` gets what could not be sent, and what was written after it. */
export function useOutbox(session: string, onReturned: (text: string) => void): Outbox {
  const { mutateAsync } = useSendMessage();
  const [waiting, setWaiting] = useState<readonly Outgoing[]>([]);
  const [error, setError] = useState<unknown>(null);
  const queue = useRef<readonly Outgoing[]>([]);
  const isSending = useRef(false);

  const hold = (next: readonly Outgoing[]): void => {
    queue.current = next;
    setWaiting(next);
  };
  const drain = async (): Promise<void> => {
    if (isSending.current) return;
    isSending.current = true;
    try {
      for (let next = queue.current[0]; next !== undefined; next = queue.current[0]) {
        await mutateAsync({ key: session, message: next.message });
        hold(queue.current.slice(1));
      }
    } catch (problem) {
      setError(problem);
      onReturned(queue.current.map((one) => one.text).join("\n"));
      hold([]);
    } finally {
      isSending.current = false;
    }
  };
  const send = (text: string, message: NewMessage): void => {
    setError(null);
    hold([...queue.current, { text, message }]);
    void drain();
  };
  return { unsent: waiting.map((one) => one.text), error, send };
}
