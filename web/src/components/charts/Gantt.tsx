import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useMemo, useRef, useState } from "react";
import { formatClock } from "@/time/format";
import { GanttBars } from "./GanttBars";
import { type GanttBar, type GanttRow, type Scale, axisTicks, dueBars, piecesOf, position, rowBars, stackPieces } from "./gantt";
import { barTimes, barTitle, tickText } from "./ganttText";
import { usePan } from "./usePan";
import { useWidth } from "./useWidth";
import { zoneOffset } from "./zoneOffset";

interface Props {
  rows: readonly GanttRow[];
  from: number;
  span: number;
  now: number;
  zone: string;
  /** What happened before is not known; null if all of it is. */
  knownFrom: number | null;
  nameOf: (row: GanttRow) => ReactNode;
  hrefOf: (bar: GanttBar, row: GanttRow) => string;
  onOpen: (href: string) => void;
  onPan: (milliseconds: number) => void;
}

const NARROW = 640;
const GUTTER = 190;
const ROW = 32;
/** For what nobody counted: neither something nor nothing. */
export const HATCHED = "repeating-linear-gradient(135deg, var(--line) 0 1px, transparent 1px 7px)";

/** Runs and due times over the time: one row for each schedule. Only the rows in sight are drawn. */
export function Gantt({ rows, from, span, now, zone, knownFrom, nameOf, hrefOf, onOpen, onPan }: Props) {
  const view = useRef<HTMLDivElement>(null);
  const full = useWidth(view);
  const narrow = full > 0 && full < NARROW;
  const gutter = narrow ? 0 : GUTTER;
  const width = Math.max(1, full - gutter - 8);
  const perPixel = span / width;
  const pan = usePan(view, perPixel, onPan);
  const scale: Scale = { from: from + pan.offset, span, width };
  const [pointed, setPointed] = useState<{ row: GanttRow; bar: GanttBar; top: number } | null>(null);
  const stacks = useMemo(
    () => rows.map((row) => stackPieces(piecesOf(row, now), perPixel)),
    [rows, now, perPixel],
  );
  const heightOf = (index: number) => ROW * Math.max(1, stacks[index]?.length ?? 0);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => view.current,
    estimateSize: (index) => heightOf(index) + (narrow ? 24 : 0),
    overscan: 12,
  });
  const heights = stacks.map((stack) => stack.length).join();
  useLayoutEffect(() => virtual.measure(), [virtual, narrow, heights]);
  const place = useMemo(() => ({ zone, now }), [zone, now]);
  const ticks = axisTicks(scale, (moment) => zoneOffset(zone, moment), narrow ? 64 : 84);
  const nowAt = position(scale, now);
  const unknown = knownFrom === null ? 0 : Math.min(width, position(scale, knownFrom));

  return (
    <div
      ref={view}
      className={`relative max-h-[calc(100dvh-15rem)] min-h-48 touch-pan-y overflow-x-hidden overflow-y-auto ${pan.dragging ? "cursor-grabbing select-none" : "cursor-grab"}`}
      {...pan.handlers}
    >
      <div className="sticky top-0 z-20 h-8 border-b border-line bg-surface" aria-hidden="true">
        {ticks
          .filter((tick) => Math.abs(position(scale, tick) - nowAt) > 42)
          .map((tick) => (
            <span
              key={tick}
              className="absolute top-1.5 -translate-x-1/2 text-xs whitespace-nowrap text-muted tabular-nums"
              style={{ left: gutter + position(scale, tick) }}
            >
              {tickText(tick, zone)}
            </span>
          ))}
        {nowAt >= 0 && nowAt <= width && (
          <span
            className="absolute top-1 -translate-x-1/2 rounded-sm bg-accent px-1.5 text-2xs leading-5 font-medium text-accent-ink tabular-nums"
            style={{ left: Math.min(full - 28, gutter + nowAt) }}
          >
            {formatClock(now, zone)}
          </span>
        )}
      </div>
      <div className="relative" style={{ height: virtual.getTotalSize() }}>
        {ticks.map((tick) => (
          <div
            key={tick}
            aria-hidden="true"
            className="absolute inset-y-0 w-px bg-line"
            style={{ left: gutter + position(scale, tick) }}
          />
        ))}
        {unknown > 0 && (
          <div
            aria-hidden="true"
            data-unknown=""
            className="absolute inset-y-0"
            style={{ left: gutter, width: unknown, background: HATCHED }}
          />
        )}
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          return (
            <div
              key={item.key}
              className="absolute inset-x-0 border-b border-line/60"
              style={{ top: item.start, height: item.size }}
            >
              <div
                className={
                  narrow
                    ? "h-6 truncate px-1 pt-1 text-xs"
                    : "absolute inset-y-0 left-0 z-10 flex items-center truncate bg-surface pr-3 pl-3"
                }
                style={narrow ? undefined : { width: gutter }}
              >
                {nameOf(row)}
              </div>
              <div
                className="absolute overflow-hidden"
                style={{ left: gutter, width: width + 8, top: narrow ? 23 : 0, height: heightOf(item.index) }}
              >
                <GanttBars
                  name={row.name}
                  bars={[...rowBars(stacks[item.index] ?? [], scale), ...dueBars(row, scale)]}
                  pitch={ROW}
                  place={place}
                  hrefOf={(bar) => hrefOf(bar, row)}
                  onOpen={onOpen}
                  onPoint={(bar) => {
                    const top = item.start + (narrow ? 23 : 0) + (bar?.level ?? 0) * ROW;
                    setPointed(bar === null ? null : { row, bar, top });
                  }}
                />
              </div>
            </div>
          );
        })}
        {nowAt >= 0 && nowAt <= width && (
          <div
            aria-hidden="true"
            className="pointer-events-none absolute inset-y-0 z-10 w-0.5 -translate-x-1/2 bg-accent"
            style={{ left: gutter + nowAt }}
          />
        )}
        {pointed !== null && !pan.dragging && (
          <div
            role="presentation"
            className="pointer-events-none absolute z-30 max-w-72 rounded-md border border-line bg-raised px-3 py-2 text-xs shadow-raised"
            style={tooltipPlace(pointed.bar, pointed.top, gutter, full, virtual.getTotalSize())}
          >
            <div className="truncate font-medium">{pointed.row.name}</div>
            <div>{barTitle(pointed.bar)}</div>
            <div className="text-muted tabular-nums">{barTimes(pointed.bar, place)}</div>
          </div>
        )}
      </div>
    </div>
  );
}

function tooltipPlace(bar: GanttBar, top: number, gutter: number, full: number, height: number) {
  const left = Math.max(4, Math.min(gutter + bar.left, full - 240));
  // Below the row, unless it is one of the last and there is room above.
  return top + 110 > height && top > 80 ? { left, bottom: height - top + 2 } : { left, top: top + 34 };
}
