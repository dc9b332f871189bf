import type { CSSProperties, KeyboardEvent } from "react";
import { classes } from "@/components/classes";
import { Icon } from "@/components/Icon";
import type { GanttBar } from "./gantt";
import { type TextPlace, barTimes, barTitle } from "./ganttText";

interface Props {
  name: string;
  bars: readonly GanttBar[];
  /** From one sub-row to the next, in pixels. */
  pitch: number;
  place: TextPlace;
  /** Where a bar leads; null for what is only to come. */
  hrefOf: (bar: GanttBar) => string | null;
  onOpen: (href: string) => void;
  onPoint: (bar: GanttBar | null) => void;
}

const CROSS_WIDTH = 16;

function lookOf(bar: GanttBar): CSSProperties {
  const colour = `var(--state-${bar.state})`;
  switch (bar.kind) {
    case "due":
      return { border: "1.5px dashed var(--muted)", background: "transparent" };
    case "missed":
      return {
        border: `1px solid ${colour}`,
        background: `repeating-linear-gradient(135deg, ${colour} 0 2px, transparent 2px 6px)`,
      };
    case "running":
      if (bar.state === "queued")
        return { border: `1.5px solid ${colour}`, background: `color-mix(in srgb, ${colour} 22%, transparent)` };
      return { background: `linear-gradient(90deg, ${colour}, color-mix(in srgb, ${colour} 65%, var(--surface)))` };
    case "solid":
      return { background: colour };
  }
}

/** A thin bar is easier to hit with some space around it, where no neighbour needs that space. */
function hasRoom(bars: readonly GanttBar[], index: number): boolean {
  const bar = bars[index];
  const [before, after] = [bars[index - 1], bars[index + 1]];
  if (bar === undefined) return false;
  const free = (left: GanttBar | undefined, right: GanttBar | undefined) =>
    left === undefined || right === undefined || right.left - left.left - left.width > 12;
  return free(before, bar) && free(bar, after);
}

/** The arrow keys walk over the bars of a row. */
function walk(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const bars = [...(event.currentTarget.parentElement?.querySelectorAll<HTMLElement>("[data-bar]") ?? [])];
  if (step === undefined) return;
  event.preventDefault();
  bars[bars.indexOf(event.currentTarget) + step]?.focus();
}

/** The bars of one row. Only the latest run is a stop of the Tab key: a row may have hundreds. */
export function GanttBars({ name, bars, pitch, place, hrefOf, onOpen, onPoint }: Props) {
  const stop = Math.max(
    0,
    bars.findLastIndex((bar) => bar.kind !== "due"),
  );
  return bars.map((bar, index) => {
    const href = hrefOf(bar);
    const text = `${name}: ${barTitle(bar)}, ${barTimes(bar, place)}`;
    const counted = (bar.kind === "missed" || bar.kind === "due") && bar.count > 1 && bar.width > 72;
    const shared = {
      "data-bar": "",
      "aria-label": text,
      tabIndex: index === stop ? 0 : -1,
      onKeyDown: walk,
      className: classes(
        "absolute rounded-xs after:absolute after:-inset-y-1.5 after:content-[''] hover:brightness-110 focus-visible:z-10",
        // A failure stands out above and below: colour alone would not tell it.
        bar.state === "failed" ? "mt-0.5 h-7" : "mt-1.5 h-5",
        hasRoom(bars, index) ? "after:-inset-x-1.5" : "after:inset-x-0",
      ),
      style: { left: bar.left, top: bar.level * pitch, width: bar.width, ...lookOf(bar) },
      onMouseEnter: () => onPoint(bar),
      onMouseLeave: () => onPoint(null),
      onFocus: () => onPoint(bar),
      onBlur: () => onPoint(null),
    };
    const key = `${bar.kind}-${bar.runs[0]?.id ?? bar.start}`;
    if (href === null) return <span key={key} role="img" {...shared} />;
    return (
      <a
        key={key}
        href={href}
        draggable={false}
        {...shared}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          onOpen(href);
        }}
      >
        {bar.marks.map((mark) => (
          <span
            key={mark.left}
            aria-hidden="true"
            className={classes(
              "absolute border-x border-surface",
              mark.state === "failed" && bar.state !== "failed" ? "-inset-y-1" : "inset-y-0",
            )}
            style={{ left: mark.left - 1, width: mark.width + 2, backgroundColor: `var(--state-${mark.state})` }}
          />
        ))}
        {bar.state === "failed" && bar.width >= CROSS_WIDTH && (
          <Icon name="cross" size={12} className="absolute inset-0 m-auto text-surface" />
        )}
        {counted && (
          <span className="absolute inset-0 m-auto h-4 w-fit rounded-xs bg-surface px-1 text-2xs text-muted">
            {`${bar.count.toLocaleString("en-US")} ${bar.kind}`}
          </span>
        )}
      </a>
    );
  });
}
