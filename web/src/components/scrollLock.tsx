/** Stands in for react-remove-scroll, which Radix uses: it locks the page's scroll by a class instead of a <style>. */

import { Slot } from "radix-ui";
import { type ReactNode, type Ref, useEffect } from "react";

let locks = 0;

interface RemoveScrollProps {
  children?: ReactNode;
  as?: unknown;
  allowPinchZoom?: boolean;
  shards?: unknown;
  enabled?: boolean;
  ref?: Ref<HTMLElement>;
}

export function RemoveScroll({
  children,
  as: _as,
  allowPinchZoom: _zoom,
  shards: _shards,
  enabled = true,
  ...rest
}: RemoveScrollProps) {
  useEffect(() => {
    if (!enabled) return undefined;
    locks += 1;
    document.documentElement.classList.add("locked-scroll");
    return () => {
      locks -= 1;
      if (locks === 0) document.documentElement.classList.remove("locked-scroll");
    };
  }, [enabled]);
  return <Slot.Root {...rest}>{children}</Slot.Root>;
}
