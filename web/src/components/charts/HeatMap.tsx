import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import type { HistoryDay } from "@/api/types";
import { useWidth } from "./useWidth";
import { type HeatMapDay, WEEKDAYS, daySummary, heatMapGrid, historySummary } from "./heatmap";

interface Props {
  history: readonly HistoryDay[];
  /** The date of today in the schedule's zone, `2026-11-16`. */
  today: string;
  weeks?: number;
}

const LEFT = 30;
const TOP = 18;
const LEAST = 10;
const MOST = 19;
const STRENGTH = [0, 35, 55, 78, 100];

function fillOf(day: HeatMapDay): string {
  if (day.tone === "empty") return "var(--sunken)";
  const colour = { good: "var(--state-succeeded)", bad: "var(--state-failed)", idle: "var(--state-skipped)" }[day.tone];
  return `color-mix(in srgb, ${colour} ${STRENGTH[day.level] ?? 100}%, var(--surface))`;
}

/** Half a year of runs by day, Monday first. The arrow keys walk over the days; the line below says what each holds. */
export function HeatMap({ history, today, weeks = 26 }: Props) {
  const grid = useMemo(() => heatMapGrid(history, today, weeks), [history, today, weeks]);
  const [chosen, setChosen] = useState<number | null>(null);
  const cells = useRef(new Map<number, SVGRectElement>());
  const last = grid.days.length - 1;
  const reachable = chosen ?? last;
  const figure = useRef<HTMLElement>(null);
  const width = useWidth(figure);
  // As large as there is room for; on a phone a day is still something to touch.
  const pitch = Math.min(MOST, Math.max(LEAST, Math.floor((width - LEFT) / weeks)));
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
            fill={fillOf(day)}
            stroke={index === chosen ? "var(--ink)" : day.tone === "empty" ? "var(--line)" : "none"}
            strokeWidth={index === chosen ? 1.5 : 0.75}
            className="outline-none"
            onMouseEnter={() => setChosen(index)}
            onFocus={() => setChosen(index)}
            onBlur={() => setChosen(null)}
            onKeyDown={(event) => walk(event, index)}
          />
        ))}
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

function Legend() {
  const swatches: [string, string][] = [
    ["var(--state-succeeded)", "succeeded"],
    ["var(--state-failed)", "something failed"],
    ["var(--state-skipped)", "not executed"],
  ];
  return (
    <span aria-hidden="true" className="flex flex-wrap gap-x-3 gap-y-1">
      {swatches.map(([colour, label]) => (
        <span key={label} className="inline-flex items-center gap-1">
          <span className="size-2.5 rounded-xs" style={{ backgroundColor: colour }} />
          {label}
        </span>
      ))}
    </span>
  );
}
