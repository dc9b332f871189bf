/** Asks before something that cannot be taken back. It stays open, with the reason, when the server says no. Enter does
 *  it, unless it destroys something: then it is chosen with care. */

import { type FormEvent, type ReactNode, useId, useRef, useState } from "react";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { ProblemNote } from "@/components/ProblemNote";

interface ConfirmDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  text?: ReactNode;
  /** The word on the button: what will be done. */
  action: string;
  danger?: boolean;
  /** Why it can no longer be done. */
  why?: string;
  onConfirm: () => Promise<unknown> | void;
  /** More to decide: a note, a box to tick. */
  children?: ReactNode;
}

export function ConfirmDialog(props: ConfirmDialogProps) {
  const { open, onOpenChange, title, text, action, danger = false, why, onConfirm, children } = props;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  const close = (next: boolean): void => {
    setError(null);
    onOpenChange(next);
  };
  const form = useId();
  const button = useRef<HTMLButtonElement>(null);
  const begin = (event: Event): void => {
    const fields = button.current?.form?.querySelector("input, textarea, select") ?? null;
    if (danger || fields !== null) return;
    event.preventDefault();
    button.current?.focus();
  };
  const confirm = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    // A dialog is drawn elsewhere in the page, but its events go to where it is written.
    event.stopPropagation();
    if (busy || why !== undefined) return;
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      close(false);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog
      open={open}
      onOpenChange={close}
      title={title}
      description={text}
      onOpenAutoFocus={begin}
      footer={
        <>
          <Button onClick={() => close(false)}>Go back</Button>
          <Button ref={button} type="submit" form={form} variant={danger ? "danger" : "primary"} busy={busy} why={why}>
            {action}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={(event) => void confirm(event)}>
        {children}
      </form>
      {error !== null && <ProblemNote error={error} />}
    </Dialog>
  );
}
