import type { CSSProperties, KeyboardEvent } from "react";
import { mounted } from "@/api/mount";
import { classes } from "@/components/classes";
import { Icon, type IconName } from "@/components/Icon";
import type { GanttBar } from "./gantt";
import { type TextPlace, barTimes, barTitle } from "./ganttText";

interface Props {
  name: string;
  bars: readonly GanttBar[];
  /** From one sub-row to the next, in pixels. */
  pitch: number;
  place: TextPlace;
  /** Where a bar leads. */
  hrefOf: (bar: GanttBar) => string;
  onOpen: (href: string) => void;
  onPoint: (bar: GanttBar | null) => void;
}

const MARK_WIDTH = 16;
const LETTER_WIDTH = 6;
/** What stands in a bar that is wide enough, and how far it stands out: colour alone would not tell it. A failure does
 *  above and below, errors only below. */
const SHAPES: Record<string, string> = {
  failed: "mt-0.5 h-7 after:inset-y-0",
  errors: "mt-1.5 h-6 after:-top-1.5 after:bottom-0",
};
const MARKS: Record<string, { icon: IconName; shape: string }> = {
  failed: { icon: "cross", shape: "-inset-y-1" },
  errors: { icon: "checkAlert", shape: "top-0 -bottom-1" },
};

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

/** The bars with some space around them: a thin one is easier to hit then, and no neighbour in its sub-row needs it. */
function barsWithRoom(bars: readonly GanttBar[]): ReadonlySet<GanttBar> {
  const roomy = new Set(bars);
  const before = new Map<number, GanttBar>();
  for (const bar of bars) {
    const other = before.get(bar.level);
    if (other !== undefined && bar.left - other.left - other.width <= 12) {
      roomy.delete(bar);
      roomy.delete(other);
    }
    before.set(bar.level, bar);
  }
  return roomy;
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
  const roomy = barsWithRoom(bars);
  return bars.map((bar, index) => {
    const href = hrefOf(bar);
    const title = barTitle(bar);
    const text = `${name}: ${title}, ${barTimes(bar, place)}`;
    const counted = bar.kind === "missed" || bar.kind === "due";
    const told = counted && bar.count > 1 && bar.width > LETTER_WIDTH * title.length + 16;
    const shared = {
      "data-bar": "",
      "aria-label": text,
      tabIndex: index === stop ? 0 : -1,
      onKeyDown: walk,
      className: classes(
        "absolute rounded-xs after:absolute after:content-[''] hover:brightness-110 focus-visible:z-10",
        SHAPES[bar.state] ?? "mt-1.5 h-5 after:-inset-y-1.5",
        roomy.has(bar) ? "after:-inset-x-1.5" : "after:inset-x-0",
      ),
      style: { left: bar.left, top: bar.level * pitch, width: bar.width, ...lookOf(bar) },
      onMouseEnter: () => onPoint(bar),
      onMouseLeave: () => onPoint(null),
      onFocus: () => onPoint(bar),
      onBlur: () => onPoint(null),
    };
    const icon = MARKS[bar.state]?.icon;
    const key = `${bar.kind}-${bar.level}-${bar.pieces[0]?.run ?? bar.start}`;
    return (
      <a
        key={key}
        href={mounted(href)}
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
            key={`${mark.state} ${mark.left}`}
            aria-hidden="true"
            className={classes(
              "absolute border-x border-surface",
              (SHAPES[bar.state] === undefined && MARKS[mark.state]?.shape) || "inset-y-0",
            )}
            style={{ left: mark.left - 1, width: mark.width + 2, backgroundColor: `var(--state-${mark.state})` }}
          />
        ))}
        {icon !== undefined && bar.width >= MARK_WIDTH && (
          <Icon name={icon} size={12} className="absolute inset-0 m-auto text-surface" />
        )}
        {told && (
          // The same words as in its name: who speaks to the page says what is to be seen.
          <span className="absolute inset-0 m-auto h-4 w-fit rounded-xs bg-surface px-1 text-2xs text-muted">{title}</span>
        )}
      </a>
    );
  });
}
