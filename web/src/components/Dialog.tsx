/** A dialog over the page: the focus stays in it, Escape closes it. */

import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { classes } from "@/components/classes";
import { Icon } from "@/components/Icon";
import { useReturnFocus } from "@/components/returnFocus";

interface DialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  description?: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
  /** Neither Escape nor a click beside it closes it: only a button does. */
  steady?: boolean;
  /** Where the focus begins, unless it is the first field or button: prevent the event and set it. */
  onOpenAutoFocus?: (event: Event) => void;
  children?: ReactNode;
}

export function Dialog(props: DialogProps) {
  const { open, onOpenChange, title, description, footer, wide = false, steady = false, onOpenAutoFocus, children } = props;
  const returnFocus = useReturnFocus(open);
  const stay = (event: Event): void => {
    if (steady) event.preventDefault();
  };
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="enter-veil fixed inset-0 z-40 bg-black/45" />
        <Radix.Content
          {...(description === undefined ? { "aria-describedby": undefined } : {})}
          onOpenAutoFocus={onOpenAutoFocus}
          onCloseAutoFocus={returnFocus}
          onEscapeKeyDown={stay}
          onInteractOutside={stay}
          className={classes(
            "enter fixed inset-x-2 bottom-[max(0.5rem,env(safe-area-inset-bottom))] z-50 mx-auto flex max-h-[88dvh] flex-col rounded-xl border border-line bg-raised shadow-raised focus:outline-none sm:top-[12vh] sm:bottom-auto sm:max-h-[76dvh]",
            wide ? "max-w-2xl" : "max-w-md",
          )}
        >
          <header className="pr-12 pl-5 pt-4">
            <Radix.Title className="text-base font-semibold break-words">{title}</Radix.Title>
            {description !== undefined && (
              <Radix.Description asChild>
                <div className="mt-1 text-sm text-muted">{description}</div>
              </Radix.Description>
            )}
          </header>
          <div className="min-h-0 overflow-y-auto px-5 py-4">{children}</div>
          {footer !== undefined && (
            <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">{footer}</footer>
          )}
          {/* Last in the order: the focus goes to the first field or button of the dialog. */}
          <Radix.Close
            aria-label="Close"
            className="absolute top-3 right-3 inline-flex size-8 items-center justify-center rounded-md text-muted hover:bg-sunken hover:text-ink"
          >
            <Icon name="cross" />
          </Radix.Close>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
