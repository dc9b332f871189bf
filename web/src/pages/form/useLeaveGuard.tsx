import { useBlocker } from "@tanstack/react-router";
import { type ReactNode, useRef } from "react";
import { ConfirmDialog } from "@/components/ConfirmDialog";

export interface LeaveGuard {
  /** Call it before the page leaves by itself, because all is saved. */
  allow: () => void;
  dialog: ReactNode;
}

/** Asks before unsaved changes are lost: by a link, by the back button, or by closing the page. */
export function useLeaveGuard(dirty: boolean): LeaveGuard {
  const allowed = useRef(false);
  const blocker = useBlocker({
    shouldBlockFn: () => dirty && !allowed.current,
    enableBeforeUnload: () => dirty && !allowed.current,
    withResolver: true,
  });
  const isLoggedOut = blocker.status === "blocked" && blocker.next.pathname === "/login";
  return {
    allow: () => {
      allowed.current = true;
    },
    dialog: (
      <ConfirmDialog
        open={blocker.status === "blocked"}
        onOpenChange={() => blocker.reset?.()}
        title="Leave without saving?"
        text={
          isLoggedOut
            ? "Your login has ended. To keep your changes, log in in another tab, come back and save."
            : "Your changes here will be lost."
        }
        action="Leave"
        danger
        onConfirm={() => blocker.proceed?.()}
      />
    ),
  };
}
