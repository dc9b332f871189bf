import type { ReactNode } from "react";
import { Button } from "@/components/Button";

interface Props {
  /** The word on the button. */
  action: string;
  why: string | undefined;
  busy: boolean;
  dirty: boolean;
  onCancel: () => void;
  /** What stood in the way of the last try: beside the button, wherever the form is scrolled to. */
  children: ReactNode;
}

/** The foot of the form, always in sight. */
export function SaveBar({ action, why, busy, dirty, onCancel, children }: Props) {
  return (
    <div className="sticky bottom-0 z-20 -mx-4 border-t border-line bg-canvas/95 px-4 py-3 backdrop-blur max-md:bottom-(--bottom-bar)">
      <div className="flex max-h-[45dvh] max-w-5xl flex-col gap-2 overflow-y-auto not-empty:mb-3">{children}</div>
      <div className="flex items-center gap-2">
        <Button type="submit" variant="primary" busy={busy} why={why}>
          {action}
        </Button>
        <Button variant="ghost" onClick={onCancel}>
          Cancel
        </Button>
        {dirty && <span className="ml-auto text-xs text-muted">Unsaved changes</span>}
      </div>
    </div>
  );
}
