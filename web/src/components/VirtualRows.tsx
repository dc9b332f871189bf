/** Many rows, of which only those in sight are drawn. Reaching the end of those that are here asks for more, again and
 * again until what is in sight is here; if that fails, a button does. */

import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type Key, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { ProblemNote } from "@/components/ProblemNote";
import { Skeleton } from "@/components/Skeleton";
import type { RowsEnd } from "@/components/rowsEnd";

interface VirtualRowsProps<T> extends RowsEnd {
  items: readonly T[];
  /** How many more there are that are not here yet: they keep their place, so that one can go there. */
  missing?: number;
  rowKey: (item: T) => Key;
  /** About how high a row is; rows are measured when they are drawn. */
  estimate?: number;
  row: (item: T, place: number) => ReactNode;
  label: string;
  /** Brings this row into sight when it changes: for the keys j and k. */
  focused?: number;
}

export function VirtualRows<T>(props: VirtualRowsProps<T>) {
  const { items, missing = 0, rowKey, estimate = 44, row, label, focused } = props;
  const { onEnd, hasMore = false, isBusy = false, endError = null } = props;
  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    // After every drawing: what stands above the list may have grown.
    if (list.current !== null) setMargin(Math.round(list.current.getBoundingClientRect().top + window.scrollY));
  });
  const virtual = useWindowVirtualizer({
    count: items.length + missing,
    estimateSize: () => estimate,
    overscan: 12,
    scrollMargin: margin,
    getItemKey: (place) => {
      const item = items[place];
      return item === undefined ? `missing ${place}` : rowKey(item);
    },
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  const wantsMore = hasMore && !isBusy && endError === null && last >= items.length - 5;
  useEffect(() => {
    if (wantsMore) onEnd?.();
  }, [wantsMore, items.length, onEnd]);
  useEffect(() => {
    if (focused !== undefined && focused >= 0) virtual.scrollToIndex(focused, { align: "auto" });
  }, [focused, virtual]);

  return (
    <>
      <div
        ref={list}
        role="list"
        aria-label={label}
        className="relative overflow-hidden rounded-b-[7px]"
        style={{ height: Math.max(0, virtual.getTotalSize() - 1) }}
      >
        {shown.map((each) => {
          const item = items[each.index];
          const transform = `translateY(${each.start - margin}px)`;
          if (item === undefined) return <MissingRow key={each.key} height={each.size} transform={transform} />;
          return (
            <div
              key={each.key}
              role="listitem"
              aria-posinset={each.index + 1}
              aria-setsize={hasMore && missing === 0 ? -1 : items.length + missing}
              data-index={each.index}
              ref={virtual.measureElement}
              className="absolute inset-x-0 top-0"
              style={{ transform }}
            >
              {row(item, each.index)}
            </div>
          );
        })}
      </div>
      {endError !== null && (
        <div className="border-t border-line p-3">
          <ProblemNote error={endError} onRetry={onEnd} />
        </div>
      )}
    </>
  );
}

function MissingRow({ height, transform }: { height: number; transform: string }) {
  return (
    <div
      aria-hidden
      className="absolute inset-x-0 top-0 flex items-center border-b border-line px-4"
      style={{ height, transform }}
    >
      <Skeleton className="h-4 w-48" />
    </div>
  );
}
