/** What ended in the last 24 hours, in columns of a quarter of an hour. Loaded by itself: it brings uPlot. */

import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Overview } from "@/api/types";
import { Icon } from "@/components/Icon";
import { look, type ShownState } from "@/components/stateLook";
import { type Activity, activityOf, lastBucket, stacked } from "@/pages/overview/activity";
import { useIsDark } from "@/state/theme";
import { useZone } from "@/state/zone";
import { counted, formatClock } from "@/time/format";

const HEIGHT = 168;
/** Half a column of room at both ends. */
const STEP = 450;

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const dataOf = (activity: Activity): uPlot.AlignedData => [activity.times, ...stacked(activity).toReversed()];

function optionsFor(
  states: readonly ShownState[],
  zone: string,
  width: number,
  onPoint: (place: number | null) => void,
): uPlot.Options {
  const columns = uPlot.paths.bars?.({ size: [0.72, 24, 1], radius: 0.15 });
  const axis = {
    stroke: color("--muted"),
    font: "11px 'Inter Variable', system-ui, sans-serif",
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
    cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
    // The last label stands in the middle of the last column: half of it needs room.
    padding: [8, 20, 0, 0],
    scales: {
      x: { range: (_chart, first, last) => [first - STEP, last + STEP] },
      y: { range: (_chart, _least, most) => [0, Math.max(4, most * 1.05)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 24,
        space: 70,
        values: (_chart, splits) => splits.map((time) => formatClock(time * 1000, zone)),
      },
      {
        ...axis,
        size: 34,
        grid: { stroke: color("--line"), width: 1 },
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000],
      },
    ],
    series: [
      {},
      ...states.toReversed().map((state) => ({
        label: state,
        paths: columns,
        points: { show: false },
        width: 0,
        fill: color(`--state-${state}`),
      })),
    ],
    hooks: { setCursor: [(chart) => onPoint(chart.cursor.idx ?? null)] },
  };
}

export function ActivityChart({ overview }: { overview: Overview }) {
  const box = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const isDark = useIsDark();
  const { resolve } = useZone();
  const zone = resolve(overview.zone);
  // Not of the whole overview: that is another one with every progress of a run.
  const { activity: known, bucket_seconds: size } = overview;
  const last = lastBucket(overview);
  const activity = useMemo(() => activityOf(known, size, last), [known, size, last]);
  const latest = useRef(activity);
  latest.current = activity;
  const chart = useRef<uPlot | null>(null);

  const states = activity.states.join();
  useEffect(() => {
    const place = box.current;
    if (place === null || states === "") return undefined;
    const options = optionsFor(latest.current.states, zone, place.clientWidth, setPointed);
    const made = new uPlot(options, dataOf(latest.current), place);
    chart.current = made;
    const sizes = new ResizeObserver(() => made.setSize({ width: place.clientWidth, height: HEIGHT }));
    sizes.observe(place);
    return () => {
      chart.current = null;
      sizes.disconnect();
      made.destroy();
    };
    // The colours are read anew when the theme changes.
  }, [states, zone, isDark]);
  useEffect(() => chart.current?.setData(dataOf(activity)), [activity]);

  if (activity.states.length === 0) {
    return <p className="py-6 text-center text-sm text-muted">Nothing ended in the last 24 hours.</p>;
  }
  return (
    <>
      <div ref={box} aria-hidden="true" />
      <Legend activity={activity} pointed={pointed} zone={zone} size={size} />
    </>
  );
}

interface LegendProps {
  activity: Activity;
  pointed: number | null;
  zone: string;
  size: number;
}

/** The numbers of the column under the pointer, or of the whole day. */
function Legend({ activity, pointed, zone, size }: LegendProps) {
  const time = pointed === null ? undefined : activity.times[pointed];
  const bucket = pointed === null ? undefined : activity.buckets[pointed];
  return (
    <div className="mt-2 flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-muted">
      <span className="min-w-24 tabular-nums">
        {time === undefined
          ? "24 hours"
          : `${formatClock(time * 1000, zone)} – ${formatClock((time + size) * 1000, zone)}`}
      </span>
      {activity.states.map((state) => {
        const { icon, label, color: fill } = look(state);
        const count = bucket === undefined ? (activity.totals.get(state) ?? 0) : (bucket[state] ?? 0);
        return (
          <span key={state} className="inline-flex items-center gap-1.5 tabular-nums">
            <span aria-hidden="true" className="size-2.5 rounded-sm" style={{ background: fill }} />
            <Icon name={icon} size={12} />
            {counted(count, label, label)}
          </span>
        );
      })}
    </div>
  );
}
