/** Words that appear when the pointer or the focus rests on something. */

import { Tooltip as Radix } from "radix-ui";
import type { ReactNode } from "react";

interface TooltipProps {
  /** undefined: nothing is said. */
  text: ReactNode | undefined;
  side?: "top" | "right" | "bottom" | "left";
  children: ReactNode;
}

export function Tooltip({ text, side = "top", children }: TooltipProps) {
  const isSilent = text === undefined || text === null || text === "";
  return (
    // Always there: a button that gets or loses its words must stay the same button, and keep the focus.
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      {!isSilent && (
        <Radix.Portal>
          <Radix.Content
            side={side}
            sideOffset={6}
            collisionPadding={8}
            className="enter z-60 max-w-72 rounded-md bg-ink px-2 py-1 text-xs text-canvas shadow-raised"
          >
            {text}
          </Radix.Content>
        </Radix.Portal>
      )}
    </Radix.Root>
  );
}

export const TooltipProvider = ({ children }: { children: ReactNode }) => (
  <Radix.Provider delayDuration={350} skipDelayDuration={200}>
    {children}
  </Radix.Provider>
);
