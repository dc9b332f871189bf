import { Link } from "@tanstack/react-router";
import { memo, useEffect } from "react";
import type { RecentRun, Schedule } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Icon } from "@/components/Icon";
import { RunDuration } from "@/components/Duration";
import { RunStateBadge } from "@/components/RunStateBadge";
import { workKind } from "@/components/workKind";
import { look, shownState } from "@/components/stateLook";
import { Ago, Countdown, Time } from "@/components/Time";
import { Sparkline } from "@/components/charts/Sparkline";
import { classes } from "@/components/classes";
import { useRowFocus } from "@/state/rowKeys";
import { formatDuration, formatTime } from "@/time/format";
import { ActiveBadge } from "./ActiveBadge";
import { ScheduleSwitch } from "./ScheduleSwitch";
import { brokenText, reasonText, stateLook } from "./scheduleState";
import type { Turn } from "./useTurning";

export const COLUMNS =
  "lg:grid-cols-[1.25rem_minmax(12rem,2fr)_11.5rem_minmax(9rem,1fr)_minmax(9rem,1fr)_2.5rem] lg:[grid-template-areas:'check_name_spark_last_next_switch']";

interface Props {
  schedule: Schedule;
  selected: boolean;
  focused: boolean;
  zone: string;
  /** Why whoever is logged in may not switch it. */
  why: string | undefined;
  /** The page of the list that it came with. */
  page: number;
  turningOn: boolean;
  /** Told when the row is drawn and when it is gone. */
  onDrawn: (page: number, drawn: boolean) => void;
  onSelect: (name: string, selected: boolean, range: boolean) => void;
  onTurn: (turn: Turn) => void;
  claim: (name: string) => boolean;
}

function Row(props: Props) {
  const { schedule, selected, focused, zone, why, page, turningOn, onDrawn, onSelect, onTurn, claim } = props;
  const link = useRowFocus(schedule.name, focused, claim);
  useEffect(() => {
    onDrawn(page, true);
    return () => onDrawn(page, false);
  }, [page, onDrawn]);
  const state = schedule.state;
  const { tone, icon } = stateLook(state);
  const kind = workKind(schedule.work);
  return (
    <div
      className={classes(
        "grid grid-cols-[1.25rem_minmax(0,1fr)_minmax(0,1fr)_2.5rem] items-center gap-x-3 gap-y-2 border-b border-line px-4 py-3 lg:gap-x-5 lg:py-2",
        "[grid-template-areas:'check_name_name_switch''._spark_spark_spark''._last_next_next']",
        COLUMNS,
        selected ? "bg-accent-soft" : "hover:bg-sunken/60",
        focused && "outline-2 -outline-offset-2 outline-focus",
      )}
    >
      <input
        type="checkbox"
        aria-label={`Select ${schedule.name}`}
        checked={selected}
        onChange={() => undefined}
        onClick={(event) => onSelect(schedule.name, event.currentTarget.checked, event.shiftKey)}
        className="size-4 self-start accent-accent [grid-area:check] max-lg:mt-0.5 lg:self-center"
      />
      <div className="min-w-0 [grid-area:name]">
        <div className="flex min-w-0 items-center gap-2">
          <Link
            ref={link}
            to="/schedules/$name"
            params={{ name: schedule.name }}
            className="truncate text-sm font-semibold hover:underline"
          >
            {schedule.name}
          </Link>
          <ActiveBadge schedule={schedule} />
          {state !== "on" && state !== "off" && (
            <Badge
              tone={tone}
              icon={icon}
              title={schedule.broken === null ? (schedule.next_run_reason ?? undefined) : brokenText(schedule)}
            >
              {state}
            </Badge>
          )}
          <span className="inline-flex shrink-0 items-center gap-1 text-xs text-muted" title={workLine(schedule.work)}>
            <Icon name={kind.icon} size={13} />
            <span className="max-sm:sr-only">{kind.label}</span>
          </span>
          {schedule.project !== null && (
            <span className="truncate text-xs text-muted max-sm:hidden">{schedule.project}</span>
          )}
        </div>
        <Sentence schedule={schedule} />
        {schedule.broken !== null && (
          <p className="truncate text-xs text-bad" title={brokenText(schedule)}>
            {brokenText(schedule)}
          </p>
        )}
      </div>
      <div className="min-w-0 [grid-area:spark]">
        <Sparkline runs={schedule.recent ?? NOTHING} describe={describer(zone)} />
      </div>
      <div className="min-w-0 text-xs [grid-area:last]">
        <LastRun schedule={schedule} />
      </div>
      <div className="min-w-0 text-xs [grid-area:next]">
        <Next schedule={schedule} />
      </div>
      <div className="self-start justify-self-end [grid-area:switch] lg:self-center">
        <ScheduleSwitch schedule={schedule} why={why} turningOn={turningOn} onTurn={onTurn} />
      </div>
    </div>
  );
}

/** Redrawn only for its own changes: there may be thousands of neighbours. */
export const ScheduleRow = memo(Row);

/** The task, the command or the address, for a tooltip. */
function workLine(work: Schedule["work"]): string | undefined {
  if (work.kind === "function") return work.task;
  if (work.kind === "shell") return typeof work.command === "string" ? work.command : work.command.join(" ");
  if (work.kind === "http") return `${work.method} ${work.url}`;
  return work.kind === "agent" ? work.prompt : undefined;
}

/** An interval has no wall clock, so its sentence does not name the zone: it stands behind, also where there is room
 *  for only a part of the sentence. */
function Sentence({ schedule: { sentence, timing, zone } }: { schedule: Schedule }) {
  const said = sentence || timing;
  const [words, behind] = said.includes(zone) ? [said, ""] : [said.replace(/\.$/, ""), ` (${zone}).`];
  return (
    <p className="flex min-w-0 overflow-hidden text-xs text-muted" title={words + behind}>
      <span className="truncate">{words}</span>
      {/* Of a long name there is room for the sentence, too. */}
      <span className="max-w-3/5 shrink-0 truncate whitespace-pre sm:max-w-none">{behind}</span>
    </p>
  );
}

const NOTHING: RecentRun[] = [];
const describers = new Map<string, (run: RecentRun) => string>();

/** One function for each zone, so that the sparklines stay as they are. */
function describer(zone: string): (run: RecentRun) => string {
  const known = describers.get(zone);
  if (known !== undefined) return known;
  const made = (run: RecentRun): string => {
    const took = run.seconds === null ? "" : `, ${formatDuration(run.seconds)}`;
    return `Run ${run.id}: ${look(shownState(run)).label}${took}, ${formatTime(Date.parse(run.at), zone, Date.now(), true)}`;
  };
  describers.set(zone, made);
  return made;
}

function LastRun({ schedule }: { schedule: Schedule }) {
  const run = schedule.last_run;
  if (run === null) return <span className="text-muted">has not run</span>;
  return (
    <Link to="/runs/$id" params={{ id: String(run.id) }} className="flex flex-col items-start gap-0.5 hover:underline">
      <RunStateBadge run={run} />
      <span className="text-muted">
        <Ago at={run.finished_at ?? run.started_at ?? run.due_at} zone={schedule.zone} />
        {run.started_at !== null && (
          <>
            {" · "}
            <RunDuration run={run} />
          </>
        )}
        {shownState(run) === "errors" && ` · ${run.reason}`}
      </span>
    </Link>
  );
}

function Next({ schedule }: { schedule: Schedule }) {
  if (schedule.probe_at !== null) {
    return (
      <span className="flex flex-col gap-0.5">
        <span>probes</span>
        <Time at={schedule.probe_at} zone={schedule.zone} className="text-muted" />
      </span>
    );
  }
  if (schedule.next_run_at === null) {
    const text = schedule.broken === null ? reasonText(schedule.next_run_reason) : "not until it is fixed";
    return (
      <span className="line-clamp-2 text-muted" title={reasonText(schedule.next_run_reason)}>
        {schedule.broken === null && !schedule.enabled
          ? schedule.off_note === null
            ? "off"
            : `off: ${schedule.off_note}`
          : text}
      </span>
    );
  }
  return (
    <span className="flex flex-col gap-0.5">
      <Countdown to={schedule.next_run_at} zone={schedule.zone} className="font-medium" />
      <Time at={schedule.next_run_at} zone={schedule.zone} className="text-muted" />
    </span>
  );
}
