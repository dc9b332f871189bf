import { type MouseEvent, memo, useRef } from "react";
import type { RecentRun } from "@/api/types";
import { barAt, FOOT, sparklineBars, sparklineSummary, statePaths } from "./sparkline";

interface Props {
  runs: readonly RecentRun[];
  /** What stands in the tooltip of a bar; the caller knows the zone. */
  describe: (run: RecentRun) => string;
  slots?: number;
}

const PITCH = 3;
const HEIGHT = 24;

function Bars({ runs, describe, slots = 60 }: Props) {
  const title = useRef<HTMLTitleElement>(null);
  const bars = sparklineBars(runs, slots, PITCH, HEIGHT);
  const summary = sparklineSummary(runs.slice(-slots));

  function point(event: MouseEvent<SVGSVGElement>): void {
    const box = event.currentTarget.getBoundingClientRect();
    const bar = barAt(bars, (event.clientX - box.left) / box.width, slots);
    const text = bar === null ? summary : describe(bar.run);
    if (title.current !== null && title.current.textContent !== text) title.current.textContent = text;
  }

  return (
    <svg
      role="img"
      aria-label={summary}
      viewBox={`0 0 ${slots * PITCH} ${HEIGHT}`}
      width={slots * PITCH}
      height={HEIGHT}
      className="block max-w-full"
      preserveAspectRatio="xMaxYMax meet"
      onMouseMove={point}
    >
      <title ref={title}>{summary}</title>
      <path d={`M0 ${HEIGHT - FOOT - 1}h${slots * PITCH}v1H0z`} fill="var(--line)" />
      {statePaths(bars, PITCH - 1).map(({ state, path }) => (
        <path key={state} d={path} fill={`var(--state-${state})`} />
      ))}
      {/* So that the pointer finds the space above a low bar. */}
      <rect width={slots * PITCH} height={HEIGHT} fill="transparent" />
    </svg>
  );
}

/** The last 60 runs: one bar each, coloured by state, as high as its time was long; one that failed hangs below the
 * line, and one with errors has a dot there. Redrawn only for new runs. */
export const Sparkline = memo(Bars);
