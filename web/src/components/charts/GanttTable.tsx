/** The timeline as a table: the same runs and due times, for readers that cannot see bars and for narrow screens. */

import type { ReactNode } from "react";
import { ErrorsBadge } from "@/components/RunStateBadge";
import { StateBadge } from "@/components/StateBadge";
import { Time } from "@/components/Time";
import { formatDuration } from "@/time/format";
import { type GanttRow, piecesOf } from "./gantt";

interface Entry {
  key: string;
  row: GanttRow;
  state: string | null;
  at: number;
  /** Where a stretch of several ends. */
  until: number | null;
  seconds: number | null;
  count: number;
  run: number | null;
}

interface Props {
  rows: readonly GanttRow[];
  from: number;
  span: number;
  now: number;
  zone: string;
  nameOf: (row: GanttRow) => ReactNode;
  runLink: (id: number, text: string) => ReactNode;
}

const MOST = 500;

/** What is in the window: the runs, the latest first, then what is due, the soonest first. */
export function tableEntries(rows: readonly GanttRow[], from: number, span: number, now: number): Entry[] {
  const entries: Entry[] = [];
  for (const row of rows) {
    for (const { state, start, end, run, executed, count } of piecesOf(row, now)) {
      if (end < from || start > from + span) continue;
      const key = `${state}-${run ?? `${row.name}-${start}`}`;
      const seconds = executed ? (end - start) / 1000 : null;
      entries.push({ key, row, state, at: start, until: run === null ? end : null, seconds, count, run });
    }
    for (const { start, end, count } of [
      ...row.due.map((at) => ({ start: at, end: at, count: 1 })),
      ...row.dueStretches.map((one) => ({ start: Date.parse(one.from), end: Date.parse(one.to), count: one.count })),
    ]) {
      if (end < from || start > from + span) continue;
      const key = `due-${row.name}-${start}`;
      entries.push({ key, row, state: null, at: start, until: count > 1 ? end : null, seconds: null, count, run: null });
    }
  }
  const [runs, due] = [entries.filter((one) => one.state !== null), entries.filter((one) => one.state === null)];
  return [...runs.sort((left, right) => right.at - left.at), ...due.sort((left, right) => left.at - right.at)];
}

export function GanttTable({ rows, from, span, now, zone, nameOf, runLink }: Props) {
  const entries = tableEntries(rows, from, span, now);
  return (
    <div className="overflow-x-auto">
      <table className="w-full text-sm">
        <thead>
          <tr className="border-b border-line text-left text-xs text-muted">
            {["Schedule", "State", "When", "How long", "Run"].map((head) => (
              <th key={head} scope="col" className="px-4 py-2 font-medium">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {entries.slice(0, MOST).map((entry) => (
            <tr key={entry.key}>
              <td className="max-w-56 truncate px-4 py-1.5">{nameOf(entry.row)}</td>
              <td className="px-4 py-1.5 whitespace-nowrap">
                {entry.state === null ? <span className="text-muted">due</span> : entry.state === "errors" ? <ErrorsBadge /> : <StateBadge state={entry.state} />}
                {entry.count > 1 && (
                  <span className="ml-1.5 text-xs text-muted">× {entry.count.toLocaleString("en-US")}</span>
                )}
              </td>
              <td className="px-4 py-1.5">
                <Time at={new Date(entry.at).toISOString()} zone={zone} seconds />
                {entry.until !== null && (
                  <>
                    {" to "}
                    <Time at={new Date(entry.until).toISOString()} zone={zone} seconds />
                  </>
                )}
              </td>
              <td className="px-4 py-1.5 whitespace-nowrap tabular-nums">
                {entry.seconds === null ? "" : formatDuration(entry.seconds)}
              </td>
              <td className="px-4 py-1.5 tabular-nums">
                {entry.run === null ? "" : runLink(entry.run, String(entry.run))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {entries.length > MOST && (
        <p className="px-4 py-2 text-xs text-muted">
          The first {MOST} of {entries.length.toLocaleString("en-US")}; choose a shorter period to see the rest.
        </p>
      )}
    </div>
  );
}
