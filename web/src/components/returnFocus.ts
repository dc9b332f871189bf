/** Where the keyboard goes when a dialog closes: back to what had it before. */

import { useRef } from "react";

/** What has the focus now. An item of a menu is gone with its menu: then it is the button of the menu. */
function focusedNow(): Element | null {
  const active = document.activeElement;
  const button = active?.closest('[role="menu"]')?.getAttribute("aria-labelledby");
  return button ? document.getElementById(button) : active;
}

/** For Radix's `onCloseAutoFocus`, which by itself knows only dialogs that have a trigger. */
export function useReturnFocus(open: boolean): (event: Event) => void {
  const wasOpen = useRef(false);
  const before = useRef<Element | null>(null);
  // While it is drawn: a field of the dialog may take the focus before any effect.
  if (open && !wasOpen.current) before.current = focusedNow();
  wasOpen.current = open;
  return (event) => {
    event.preventDefault();
    const place = before.current?.isConnected ? before.current : document.getElementById("main");
    // Unless something else took it meanwhile, such as a field of the page that the dialog led to.
    const active = document.activeElement ?? document.body;
    if (place instanceof HTMLElement && active.contains(place)) place.focus();
  };
}
