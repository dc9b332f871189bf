import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import type { HistoryDay } from "@/api/types";
import { useWidth } from "./useWidth";
import {
  type DayTone,
  LEFT,
  LEVELS,
  WEEKDAYS,
  daySummary,
  heatMapGrid,
  heatMapLayout,
  historySummary,
} from "./heatmap";

interface Props {
  history: readonly HistoryDay[];
  /** The date of today in the schedule's zone, `2026-11-16`. */
  today: string;
  weeks?: number;
}

const TOP = 18;

function fillOf(tone: DayTone, level: number): string {
  return tone === "empty" ? "var(--sunken)" : `var(--heat-${tone}-${level})`;
}

/** The sign of a day on which something failed, for whoever cannot tell its colour. */
function crossIn(x: number, y: number, size: number): string {
  const [near, far] = [size * 0.28, size * 0.72];
  return `M${x + near} ${y + near}L${x + far} ${y + far}M${x + far} ${y + near}L${x + near} ${y + far}`;
}

/** The same of a day on which something succeeded with errors: a stroke. */
function strokeIn(x: number, y: number, size: number): string {
  return `M${x + size * 0.24} ${y + size * 0.5}h${size * 0.52}`;
}

const MARKS: Partial<Record<DayTone, (x: number, y: number, size: number) => string>> = { bad: crossIn, warn: strokeIn };

/** Half a year of runs by day, Monday first. The arrow keys walk over the days; the line below says what each holds. */
export function HeatMap({ history, today, weeks: most = 26 }: Props) {
  const figure = useRef<HTMLElement>(null);
  const { weeks, pitch } = heatMapLayout(useWidth(figure), most);
  const grid = useMemo(() => heatMapGrid(history, today, weeks), [history, today, weeks]);
  const [chosen, setChosen] = useState<number | null>(null);
  const cells = useRef(new Map<number, SVGRectElement>());
  const last = grid.days.length - 1;
  const reachable = chosen ?? last;
  const shown = chosen === null ? null : grid.days[chosen];

  function walk(event: KeyboardEvent, index: number) {
    const steps: Record<string, number> = {
      ArrowLeft: -7,
      ArrowRight: 7,
      ArrowUp: -1,
      ArrowDown: 1,
      Home: -index,
      End: last - index,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.min(last, Math.max(0, index + step));
    setChosen(next);
    cells.current.get(next)?.focus();
  }

  return (
    <figure ref={figure} className="m-0 min-w-0">
      <svg
        role="group"
        aria-label={`Runs by day. ${historySummary(history)}`}
        width={LEFT + weeks * pitch}
        height={TOP + 7 * pitch}
        className="block select-none"
        onMouseLeave={() => setChosen(null)}
      >
        {grid.months.map((month) => (
          <text key={month.week} x={LEFT + month.week * pitch} y={11} fontSize={11} fill="var(--muted)">
            {month.label}
          </text>
        ))}
        {[0, 2, 4].map((weekday) => (
          <text key={weekday} x={0} y={TOP + weekday * pitch + pitch / 2 + 2} fontSize={11} fill="var(--muted)">
            {WEEKDAYS[weekday]}
          </text>
        ))}
        {grid.days.map((day, index) => (
          <rect
            key={day.date}
            ref={(element) => {
              if (element === null) cells.current.delete(index);
              else cells.current.set(index, element);
            }}
            role="img"
            aria-label={daySummary(day)}
            tabIndex={index === reachable ? 0 : -1}
            x={LEFT + day.week * pitch}
            y={TOP + day.weekday * pitch}
            width={pitch - 3}
            height={pitch - 3}
            rx={2.5}
            fill={fillOf(day.tone, day.level)}
            stroke={index === chosen ? "var(--ink)" : day.tone === "empty" ? "var(--line)" : "none"}
            strokeWidth={index === chosen ? 1.5 : 0.75}
            className="outline-none"
            onMouseEnter={() => setChosen(index)}
            onFocus={() => setChosen(index)}
            onBlur={() => setChosen(null)}
            onKeyDown={(event) => walk(event, index)}
          />
        ))}
        <path
          aria-hidden="true"
          data-testid="marked-days"
          d={grid.days
            .map((day) => MARKS[day.tone]?.(LEFT + day.week * pitch, TOP + day.weekday * pitch, pitch - 3) ?? "")
            .join("")}
          stroke="var(--surface)"
          strokeWidth={1.4}
          strokeLinecap="round"
          className="pointer-events-none"
        />
      </svg>
      <figcaption className="mt-2 flex flex-wrap items-center justify-between gap-x-4 gap-y-1 text-xs text-muted">
        <span aria-live="polite">
          {shown === null || shown === undefined ? historySummary(history) : daySummary(shown)}
        </span>
        <Legend />
      </figcaption>
    </figure>
  );
}

const SWATCH = 11;
const MEANINGS: [DayTone, string][] = [
  ["good", "succeeded"],
  ["warn", "something had errors"],
  ["bad", "something failed"],
  ["idle", "cancelled or not executed"],
];

/** Every colour that a day with runs can have. */
function Legend() {
  return (
    <span aria-hidden="true" data-testid="legend" className="flex flex-wrap gap-x-3 gap-y-1">
      {MEANINGS.map(([tone, label]) => (
        <span key={tone} className="inline-flex items-center gap-1">
          <svg width={SWATCH * LEVELS.length} height={SWATCH}>
            {LEVELS.map((level) => (
              <rect
                key={level}
                x={(level - 1) * SWATCH}
                width={SWATCH - 1}
                height={SWATCH}
                rx={2}
                fill={fillOf(tone, level)}
              />
            ))}
            <path
              d={LEVELS.map((level) => MARKS[tone]?.((level - 1) * SWATCH, 0.5, SWATCH - 1) ?? "").join("")}
              stroke="var(--surface)"
              strokeWidth={1.4}
              strokeLinecap="round"
            />
          </svg>
          {label}
        </span>
      ))}
      <span>the stronger, the more runs</span>
    </span>
  );
}
