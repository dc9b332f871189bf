/** Past runs, what runs, what is due and what was missed, over the time. Span and place are in the address. */

import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import { useProjects } from "@/api/queries/projects";
import { useTimeline } from "@/api/queries/timeline";
import type { Timeline } from "@/api/types";
import { Banner } from "@/components/Banner";
import { Button } from "@/components/Button";
import { EmptyState } from "@/components/EmptyState";
import { IconButton } from "@/components/IconButton";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { SearchField } from "@/components/SearchField";
import { Segmented } from "@/components/Segmented";
import { Select } from "@/components/Select";
import { SkeletonRows } from "@/components/Skeleton";
import { Gantt } from "@/components/charts/Gantt";
import { GanttTable } from "@/components/charts/GanttTable";
import { type GanttBar, type GanttRow, SPANS, type Span, ganttRows, onlyPiece, windowStart } from "@/components/charts/gantt";
import { useShortcut } from "@/state/shortcuts";
import { alignClock, useNow } from "@/state/ticker";
import { useUrlState } from "@/state/urlState";
import { useZone } from "@/state/zone";
import { Legend } from "./Legend";
import { type Window, askedSpan, panned, searchOf, windowOf, zoomed } from "./window";

const STEPS: Record<Span, number> = { "1h": 1000, "6h": 2000, "24h": 5000, "7d": 30_000 };

export function TimelinePage() {
  const [search, setSearch] = useUrlState();
  const window = windowOf(search);
  const now = useNow(STEPS[window.span]);
  const project = search["project"] ?? "";
  const words = search["q"] ?? "";
  const query = useTimeline({ ...askedSpan(window, now), ...(project !== "" && { project }), limit: 2000 });
  const go = (next: Window) => setSearch(searchOf(next));
  const move = (part: number) => go(panned(window, SPANS[window.span] * part, now));
  const asTable = search["view"] === "table";

  useShortcut("[", () => move(-0.5), { label: "Earlier", group: "Timeline" });
  useShortcut("]", () => move(0.5), { label: "Later", group: "Timeline" });
  useShortcut("arrowleft", () => move(-0.5), { label: "Earlier", group: "Timeline", enabled: !asTable });
  useShortcut("arrowright", () => move(0.5), { label: "Later", group: "Timeline", enabled: !asTable });
  useShortcut("t", () => go({ ...window, at: null }), { label: "Now", group: "Timeline" });

  return (
    <>
      <PageHeader title="Timeline" description="What ran, what is running, and what is due." />
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <SearchField label="Search schedules" value={words} onChange={(q) => setSearch({ q })} />
        <ProjectSelect value={project} onChange={(next) => setSearch({ project: next })} />
        <div className="ml-auto flex flex-wrap items-center gap-2">
          <Segmented
            label="View"
            value={asTable ? "table" : "bars"}
            options={[
              { value: "bars", label: "Bars" },
              { value: "table", label: "Table" },
            ]}
            onChange={(view) => setSearch({ view: view === "table" ? view : undefined })}
          />
          <Segmented
            label="Span"
            value={window.span}
            options={(Object.keys(SPANS) as Span[]).map((span) => ({ value: span, label: span }))}
            onChange={(span) => go(zoomed(window, span))}
          />
          <div className="flex items-center gap-1">
            <IconButton icon="arrowLeft" label="Earlier" onClick={() => move(-0.5)} />
            <Button
              size="small"
              variant={window.at === null ? "primary" : "secondary"}
              aria-pressed={window.at === null}
              onClick={() => go({ ...window, at: null })}
            >
              Now
            </Button>
            <IconButton icon="arrowRight" label="Later" onClick={() => move(0.5)} />
          </div>
        </div>
      </div>
      <QueryView query={query} skeleton={<SkeletonRows rows={10} />}>
        {(timeline) => (
          <Drawing
            timeline={timeline}
            window={window}
            now={now}
            words={words}
            asTable={asTable}
            onMove={(milliseconds) => go(panned(window, milliseconds, now))}
            onClear={() => setSearch({ q: undefined })}
          />
        )}
      </QueryView>
    </>
  );
}

function ProjectSelect({ value, onChange }: { value: string; onChange: (project: string) => void }) {
  const projects = useProjects().data?.items ?? [];
  const names = [...new Set([...projects.map((project) => project.name), value].filter(Boolean))];
  if (names.length === 0) return null;
  return (
    <Select
      label="Project"
      hideLabel
      value={value}
      onChange={onChange}
      options={[{ value: "", label: "Any project" }, ...names]}
      className="min-w-32"
    />
  );
}

interface DrawingProps {
  timeline: Timeline;
  window: Window;
  now: number;
  words: string;
  asTable: boolean;
  onMove: (milliseconds: number) => void;
  onClear: () => void;
}

function Drawing({ timeline, window, now, words, asTable, onMove, onClear }: DrawingProps) {
  const navigate = useNavigate();
  const { resolve } = useZone();
  const zone = resolve(timeline.zone);
  const rows = useMemo(() => {
    const wanted = words.trim().toLowerCase();
    return ganttRows(timeline).filter((row) => row.name.toLowerCase().includes(wanted));
  }, [timeline, words]);
  useEffect(() => alignClock(timeline.now), [timeline.now]);
  const knownFrom = timeline.known_from === null ? null : Date.parse(timeline.known_from);
  const shared = { rows, from: windowStart(window.span, window.at, now), span: SPANS[window.span], now, zone, nameOf };
  // More is asked for than is in sight: what is not counted may be beside it.
  const isUnknown = knownFrom !== null && knownFrom > shared.from;

  return (
    <>
      <Gaps incomplete={timeline.incomplete} unknown={isUnknown} />
      <div className="overflow-hidden rounded-lg border border-line bg-surface">
        {rows.length === 0 ? (
          <Nothing words={words} onClear={onClear} />
        ) : asTable ? (
          <GanttTable
            {...shared}
            runLink={(id, text) => (
              <Link to="/runs/$id" params={{ id: String(id) }} className="text-accent hover:underline">
                {text}
              </Link>
            )}
          />
        ) : (
          <Gantt {...shared} knownFrom={knownFrom} hrefOf={hrefOf} onOpen={(href) => void navigate({ to: href })} onPan={onMove} />
        )}
      </div>
      {!asTable && <Legend unknown={isUnknown} />}
    </>
  );
}

/** What of the period is not shown. */
function Gaps({ incomplete, unknown }: { incomplete: boolean; unknown: boolean }) {
  if (!unknown && !incomplete) return null;
  return (
    <div className="mb-3">
      {incomplete ? (
        <Banner tone="warn" title="There are too many schedules to draw: some are not shown.">
          Choose a project, or a shorter period.
        </Banner>
      ) : (
        <Banner tone="info" title="So much ran that only the latest of it is counted; the time before is hatched.">
          Choose a shorter period to see it.
        </Banner>
      )}
    </div>
  );
}

function Nothing({ words, onClear }: { words: string; onClear: () => void }) {
  if (words !== "") {
    return (
      <EmptyState
        icon="timeline"
        title="No matching schedule in this period"
        text="Move the window, or choose a longer span."
        action={<Button onClick={onClear}>Clear search</Button>}
      />
    );
  }
  return (
    <EmptyState
      icon="timeline"
      title="Nothing happened in this period, and nothing is due"
      text="Move to another period, or choose a longer one. To schedule something:"
      command={'ostinato schedule add hello "every 5m" --shell "echo hello"'}
    />
  );
}

function nameOf(row: GanttRow) {
  if (row.loose)
    return (
      <span className="truncate text-sm text-muted" title="Work without a schedule">
        {row.name}
      </span>
    );
  return (
    <Link to="/schedules/$name" params={{ name: row.name }} className="truncate text-sm font-medium hover:underline">
      {row.name}
    </Link>
  );
}

/** A bar of one run leads to it; one of many, and what is only due, to the schedule, or to the runs of the task. */
function hrefOf(bar: GanttBar, row: GanttRow): string {
  const run = onlyPiece(bar)?.run ?? null;
  if (run !== null) return `/runs/${run}`;
  if (!row.loose) return `/schedules/${encodeURIComponent(row.name)}`;
  const task = row.runs[0]?.task ?? row.stretches[0]?.task ?? null;
  return task === null ? "/runs" : `/runs?task=${encodeURIComponent(task)}`;
}
