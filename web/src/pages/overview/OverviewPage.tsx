/** The first page: what runs, what is wrong, what comes. */

import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { loadFile } from "@/api/files";
import { useMay } from "@/api/queries/me";
import { useOverview } from "@/api/queries/overview";
import type { Overview } from "@/api/types";
import { Button, buttonClass } from "@/components/Button";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import { ErrorBoundary } from "@/components/ErrorBoundary";
import { Icon } from "@/components/Icon";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { Skeleton, SkeletonCards } from "@/components/Skeleton";
import { BrokenCard } from "@/pages/overview/BrokenCard";
import { Counts } from "@/pages/overview/Counts";
import { DueCard } from "@/pages/overview/DueCard";
import { EngineBanner } from "@/pages/overview/EngineBanner";
import { FailedCard } from "@/pages/overview/FailedCard";
import { LateCard } from "@/pages/overview/LateCard";
import { NextDay } from "@/pages/overview/NextDay";
import { QuarantineCard } from "@/pages/overview/QuarantineCard";
import { RunningCard } from "@/pages/overview/RunningCard";
import { counted } from "@/time/format";

const ActivityChart = lazy(() =>
  loadFile(() => import("@/pages/overview/ActivityChart")).then((module) => ({ default: module.ActivityChart })),
);

export function OverviewPage() {
  const query = useOverview();
  return (
    <>
      <PageHeader
        title="Overview"
        description={query.data === undefined ? undefined : <Summary overview={query.data} />}
        actions={<NewSchedule />}
      />
      <QueryView query={query} skeleton={<SkeletonCards cards={6} />}>
        {(overview) => <Body overview={overview} />}
      </QueryView>
    </>
  );
}

function NewSchedule() {
  const may = useMay("operator");
  if (may.reason !== undefined) {
    return (
      <Button icon="plus" why={may.reason}>
        New schedule
      </Button>
    );
  }
  return (
    <Link to="/schedules/new" className={buttonClass("primary")}>
      <Icon name="plus" size={14} />
      New schedule
    </Link>
  );
}

function Summary({ overview: { engine, counts } }: { overview: Overview }) {
  const nodes = engine.alive ? `${counted(engine.nodes, "node")} alive` : "No node is alive";
  return `${nodes} · ${counted(counts.schedules, "schedule")}`;
}

function Body({ overview }: { overview: Overview }) {
  const { counts } = overview;
  const isNew = counts.schedules === 0 && counts.running === 0 && overview.activity.length === 0;
  return (
    <div className="flex flex-col gap-4">
      <EngineBanner engine={overview.engine} />
      {isNew ? <Welcome /> : <Cards overview={overview} />}
    </div>
  );
}

function Cards({ overview }: { overview: Overview }) {
  return (
    <>
      <Counts overview={overview} />
      <div className="grid gap-4 lg:grid-cols-3">
        <div className="flex min-w-0 flex-col gap-4 lg:col-span-2">
          {overview.broken.length > 0 && <BrokenCard schedules={overview.broken} total={overview.counts.broken} />}
          {overview.quarantine.length > 0 && (
            <QuarantineCard rows={overview.quarantine} total={overview.counts.quarantined} />
          )}
          <RunningCard runs={overview.running} total={overview.counts.running} />
          {overview.late.length > 0 && <LateCard runs={overview.late} total={overview.counts.late} />}
          <Card title="Activity" aside="the last 24 hours">
            <ErrorBoundary>
              <Suspense fallback={<Skeleton className="h-44 w-full opacity-50" />}>
                <ActivityChart overview={overview} />
              </Suspense>
            </ErrorBoundary>
          </Card>
          <FailedCard runs={overview.failed} />
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <DueCard due={overview.due} total={overview.counts.due} />
          <NextDay hours={overview.next24} estimated={overview.estimated} zone={overview.zone} />
        </div>
      </div>
    </>
  );
}

function Welcome() {
  return (
    <Card>
      <EmptyState
        icon="calendar"
        title="Nothing is scheduled yet"
        text="A schedule says what to run and when. Create the first one here, or on the command line:"
        command={'ostinato schedule add hello "every 1m" --shell "echo hello"'}
        action={<NewSchedule />}
      />
    </Card>
  );
}
