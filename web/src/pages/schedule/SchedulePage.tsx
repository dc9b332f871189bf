/** One schedule: when it is due, what it did, how it is treated, and everything that can be done with it. */

import { Link, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useMay } from "@/api/queries/me";
import { useSchedule } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Banner } from "@/components/Banner";
import { Card } from "@/components/Card";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { SkeletonCards } from "@/components/Skeleton";
import { Countdown, Time } from "@/components/Time";
import { useUrlState } from "@/state/urlState";
import { calendarsIn } from "../form/daysOff";
import { ActiveBadge } from "../schedules/ActiveBadge";
import { ScheduleSwitch } from "../schedules/ScheduleSwitch";
import { stateLook } from "../schedules/scheduleState";
import { type Turning, useTurning } from "../schedules/useTurning";
import { BlockedStrip } from "./BlockedStrip";
import { BrokenStrip } from "./BrokenStrip";
import { CodeChanges } from "./CodeChanges";
import { HistoryCard } from "./HistoryCard";
import { PingAddress } from "./PingAddress";
import { PolicyCard } from "./PolicyCard";
import { PresetCard } from "./PresetCard";
import { RecentRuns } from "./RecentRuns";
import { Relations } from "./Relations";
import { RunsDialog } from "./RunsDialog";
import { ScheduleActions } from "./ScheduleActions";
import { Upcoming } from "./Upcoming";
import { WorkView } from "./WorkView";

const LIST = { label: "All schedules", to: "/schedules" };

export function SchedulePage() {
  const { name = "" } = useParams({ strict: false });
  const query = useSchedule(name, { watched: true });
  return (
    <QueryView query={query} skeleton={<SkeletonCards cards={6} />} page={{ title: name, list: LIST }}>
      {(schedule) => <Loaded key={schedule.id} schedule={schedule} />}
    </QueryView>
  );
}

function Loaded({ schedule }: { schedule: Schedule }) {
  const [search, setSearch] = useUrlState();
  const may = useMay("operator");
  const turning = useTurning();
  const state = schedule.state;
  const showRuns = (open: boolean) => setSearch({ runs: open ? "1" : undefined });
  return (
    <>
      <PageHeader
        title={schedule.name}
        crumbs={[{ label: "Schedules", to: "/schedules" }]}
        heading={
          <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <span className="min-w-0 break-words">{schedule.name}</span>
            <ScheduleSwitch
              schedule={schedule}
              why={may.reason}
              turningOn={turning.isTurningOn(schedule.name)}
              onTurn={turning.turn}
            />
            <Badge {...stateLook(state)} title={schedule.next_run_reason ?? undefined}>
              {state}
            </Badge>
            <ActiveBadge schedule={schedule} />
          </span>
        }
        description={<Description schedule={schedule} />}
        actions={<ScheduleActions schedule={schedule} turning={turning} onRuns={() => showRuns(true)} />}
      />
      <div className="flex flex-col gap-4">
        <Held schedule={schedule} turning={turning} />
        {schedule.late && <Banner tone="bad" title={`Late: it has not succeeded within ${schedule.policy.fresh}.`} />}
        <div className="grid grid-cols-[minmax(0,1fr)] gap-4 xl:grid-cols-[minmax(0,1fr)_22rem]">
          <div className="flex min-w-0 flex-col gap-4">
            <Relations schedule={schedule} />
            <RecentRuns schedule={schedule} onAll={() => showRuns(true)} />
            <HistoryCard schedule={schedule} />
          </div>
          <div className="flex min-w-0 flex-col gap-4">
            <Upcoming schedule={schedule} />
            {schedule.work.kind !== "check_in" && <PresetCard schedule={schedule} turning={turning} />}
            <Card title="Work">
              <WorkView work={schedule.work} />
              {schedule.work.kind === "check_in" && <PingAddress schedule={schedule.name} />}
            </Card>
            <CodeChanges schedule={schedule} />
            <PolicyCard schedule={schedule} />
            <Card title="Details">
              <Details schedule={schedule} />
            </Card>
          </div>
        </div>
      </div>
      <RunsDialog schedule={schedule.name} open={search["runs"] === "1"} onOpenChange={showRuns} />
      {turning.dialogs}
    </>
  );
}

function Description({ schedule }: { schedule: Schedule }) {
  return (
    <>
      {schedule.sentence || schedule.timing}
      {!schedule.sentence.includes(schedule.zone) && ` Zone ${schedule.zone}.`}
      {schedule.next_run_at !== null && (
        <>
          {" Next "}
          <Countdown to={schedule.next_run_at} zone={schedule.zone} className="font-medium text-ink" />.
        </>
      )}
    </>
  );
}

/** What keeps it from running; of a broken one with its last error. */
function Held({ schedule, turning }: { schedule: Schedule; turning: Turning }) {
  const blocked = schedule.blocked_by ?? null;
  if (blocked === null) return null;
  if (schedule.broken !== null && !schedule.enabled)
    return <BrokenStrip schedule={schedule} blocked={blocked} turning={turning} />;
  return <BlockedStrip blocked={blocked} zone={schedule.zone} turning={turning} />;
}

function Calendars({ names }: { names: readonly string[] }) {
  return (
    <span className="flex flex-wrap gap-x-3">
      {names.map((name) => (
        <Link
          key={name}
          to="/calendars"
          search={{ calendar: name }}
          className="min-w-0 break-all text-accent hover:underline"
        >
          {name}
        </Link>
      ))}
    </span>
  );
}

function Details({ schedule }: { schedule: Schedule }) {
  const calendars = calendarsIn(schedule.timing);
  const facts: [string, ReactNode][] = [
    [
      "Timing",
      <code key="timing" className="font-mono text-xs">
        {schedule.timing}
      </code>,
    ],
    ["Calendars", calendars.length > 0 ? <Calendars key="calendars" names={calendars} /> : null],
    ["Zone", schedule.zone],
    ["Project", schedule.project],
    ["Owner", schedule.origin === null ? schedule.owner : `${schedule.owner} of app ${schedule.origin}`],
    ["Note", schedule.note],
    ["Runs left", schedule.remaining],
    ["Fresh until", schedule.fresh_until && <Time key="fresh" at={schedule.fresh_until} zone={schedule.zone} />],
    ["Failures in a row", schedule.failures > 0 ? schedule.failures : null],
    ["Created", <Time key="created" at={schedule.created_at} zone={schedule.zone} />],
    ["Changed", <Time key="changed" at={schedule.updated_at} zone={schedule.zone} />],
    ["Version", schedule.version],
  ];
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
      {facts
        .filter(([, value]) => value !== null && value !== "")
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="min-w-0 break-words">{value}</dd>
          </div>
        ))}
    </dl>
  );
}
