/** A ring that shows how much of a lane is used. */

import type { Lane } from "@/api/types";

const RADIUS = 26;
const ROUND = 2 * Math.PI * RADIUS;

export function LaneGauge({ lane }: { lane: Lane }) {
  const share = lane.limit > 0 ? Math.min(1, lane.used / lane.limit) : 0;
  const color = share >= 1 ? "stroke-(--state-missed)" : "stroke-(--state-running)";
  return (
    <div
      role="meter"
      aria-label={`Runs under way in lane ${lane.name}`}
      aria-valuemin={0}
      aria-valuemax={lane.limit}
      aria-valuenow={lane.used}
      aria-valuetext={`${lane.used} of ${lane.limit}${share >= 1 ? ", full" : ""}`}
      className="relative size-16 shrink-0"
    >
      <svg aria-hidden="true" viewBox="0 0 64 64" className="size-full -rotate-90">
        <circle cx="32" cy="32" r={RADIUS} fill="none" strokeWidth="6" className="stroke-line" />
        {share > 0 && (
          <circle
            cx="32"
            cy="32"
            r={RADIUS}
            fill="none"
            strokeWidth="6"
            strokeLinecap="round"
            strokeDasharray={`${share * ROUND} ${ROUND}`}
            className={`${color} transition-[stroke-dasharray] duration-300`}
          />
        )}
      </svg>
      <span className="absolute inset-0 flex flex-col items-center justify-center leading-none">
        <span className="text-sm font-semibold tabular-nums">{lane.used}</span>
        <span className="mt-0.5 text-2xs text-muted">{share >= 1 ? "full" : "used"}</span>
      </span>
    </div>
  );
}
