/** The output of a run: numbered lines with colours, follow, search, wrap, copy and download. 100,000 lines stay smooth. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button } from "@/components/Button";
import { classes } from "@/components/classes";
import { OutputLineRow } from "./OutputLineRow";
import { OutputToolbar } from "./OutputToolbar";
import type { LineStore } from "./lines";
import { useFollow } from "./useFollow";
import { useOutputSearch } from "./useOutputSearch";
import { useWrap } from "./useWrap";
import "./ansi.css";

interface Props {
  store: LineStore;
  /** Counts up with every addition to the store, which is changed in place. */
  version: number;
  /** The first of it is not all here yet. */
  loading: boolean;
  /** The run may still print. */
  live: boolean;
  zone: string;
  /** When each attempt began. */
  starts: readonly number[];
  onDownload: () => Promise<void>;
  className?: string;
}

const ROW = 20;
/** About how wide a letter is, in pixels. */
const LETTER = 7.2;

export function OutputView(props: Props) {
  const { store, version, loading, live, zone, starts, onDownload, className } = props;
  const view = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const [wrap, setWrap] = useWrap(store.count, loading);
  const [stamps, setStamps] = useState(false);
  const search = useOutputSearch(store, version);
  const virtual = useVirtualizer({
    count: store.count,
    getScrollElement: () => view.current,
    estimateSize: () => ROW,
    overscan: 12,
    paddingStart: 8,
    paddingEnd: 8,
  });
  const { following, setFollowing, onScroll } = useFollow(view, live, virtual.getTotalSize());
  const size = virtual.getTotalSize();
  const last = store.count - 1;
  // The rows at the end are as high as they are only once they are drawn: it is gone to again until they are in sight.
  useLayoutEffect(() => {
    if (following && last >= 0) virtual.scrollToIndex(last, { align: "end" });
  }, [following, last, size, virtual]);
  const digits = String(store.lastNumber).length;

  useEffect(() => {
    virtual.measure();
    // What is drawn is measured anew: nobody tells of a row that has kept its height.
    view.current?.querySelectorAll("[data-index]").forEach((row) => wrap && virtual.measureElement(row));
  }, [wrap, stamps, virtual]);

  function go(direction: 1 | -1): void {
    const hit = search.step(direction, virtual.range?.startIndex ?? 0);
    if (hit === null) return;
    setFollowing(false);
    virtual.scrollToIndex(hit.line, { align: "center" });
    const place = view.current;
    // Far to the right in a line that is not wrapped.
    if (place !== null && !wrap) place.scrollLeft = Math.max(0, hit.end * LETTER - place.clientWidth / 2);
  }

  return (
    <section
      aria-label="Output"
      className={classes("flex min-h-0 flex-col overflow-hidden rounded-lg border border-line bg-surface", className)}
      onKeyDown={(event) => {
        // The browser's own search cannot see lines that are not drawn.
        if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          input.current?.select();
        }
      }}
    >
      <OutputToolbar
        search={search}
        searchInput={input}
        onStep={go}
        wrap={wrap}
        onWrap={setWrap}
        stamps={stamps}
        onStamps={setStamps}
        copyText={() => store.allText()}
        onDownload={onDownload}
        extent={store.extent}
      />
      <div className="relative min-h-0 flex-1">
        <div
          ref={view}
          role="log"
          aria-label="Output lines"
          aria-live="off"
          tabIndex={0}
          onScroll={onScroll}
          className="h-full overflow-auto font-mono text-xs leading-5 focus-visible:-outline-offset-2"
        >
          {store.count === 0 ? (
            <p className="px-4 py-6 font-sans text-sm text-muted">
              {live ? "Nothing printed yet." : "The run printed nothing."}
            </p>
          ) : (
            <div
              className={classes("relative", wrap ? "w-full" : "w-max min-w-full")}
              style={{ height: virtual.getTotalSize() }}
            >
              {virtual.getVirtualItems().map((item) => (
                <div
                  key={item.key}
                  data-index={item.index}
                  ref={wrap ? virtual.measureElement : undefined}
                  className={classes("top-0 left-0", wrap ? "absolute w-full" : "absolute min-w-full")}
                  style={{ transform: `translateY(${item.start}px)` }}
                >
                  <OutputLineRow
                    store={store}
                    index={item.index}
                    wrap={wrap}
                    stamps={stamps}
                    zone={zone}
                    digits={digits}
                    attempt={starts.length > 1 ? store.attemptAt(item.index, starts) : null}
                    highlights={search.highlights(item.index)}
                  />
                </div>
              ))}
            </div>
          )}
        </div>
        {live && !following && store.count > 0 && (
          <div className="absolute inset-x-0 bottom-3 flex justify-center">
            <Button
              size="small"
              variant="primary"
              icon="chevronDown"
              className="shadow-raised"
              onClick={() => setFollowing(true)}
            >
              Follow the output
            </Button>
          </div>
        )}
      </div>
    </section>
  );
}
