/** Many rows, of which only those in sight are drawn. Reaching the end asks for more. */

import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type Key, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";

interface VirtualRowsProps<T> {
  items: readonly T[];
  rowKey: (item: T) => Key;
  /** About how high a row is; rows are measured when they are drawn. */
  estimate?: number;
  row: (item: T, place: number) => ReactNode;
  label: string;
  /** Called when the last rows come into sight and there is more. */
  onEnd?: () => void;
  hasMore?: boolean;
  /** Brings this row into sight when it changes: for the keys j and k. */
  focused?: number;
}

export function VirtualRows<T>(props: VirtualRowsProps<T>) {
  const { items, rowKey, estimate = 44, row, label, onEnd, hasMore = false, focused } = props;
  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    // After every drawing: what stands above the list may have grown.
    if (list.current !== null) setMargin(Math.round(list.current.getBoundingClientRect().top + window.scrollY));
  });
  const virtual = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => estimate,
    overscan: 12,
    scrollMargin: margin,
    getItemKey: (place) => {
      const item = items[place];
      return item === undefined ? place : rowKey(item);
    },
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && last >= items.length - 5) onEnd?.();
  }, [hasMore, last, items.length, onEnd]);
  useEffect(() => {
    if (focused !== undefined && focused >= 0) virtual.scrollToIndex(focused, { align: "auto" });
  }, [focused, virtual]);

  return (
    <div
      ref={list}
      role="list"
      aria-label={label}
      className="relative overflow-hidden rounded-b-[7px]"
      style={{ height: Math.max(0, virtual.getTotalSize() - 1) }}
    >
      {shown.map((each) => {
        const item = items[each.index];
        return (
          item !== undefined && (
            <div
              key={each.key}
              role="listitem"
              aria-posinset={each.index + 1}
              aria-setsize={hasMore ? -1 : items.length}
              data-index={each.index}
              ref={virtual.measureElement}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${each.start - margin}px)` }}
            >
              {row(item, each.index)}
            </div>
          )
        );
      })}
    </div>
  );
}
