/** All schedules: filters in the address, a switch and a sparkline for each, and actions on many. */

import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useMay } from "@/api/queries/me";
import { Button, buttonClass } from "@/components/Button";
import { EmptyState } from "@/components/EmptyState";
import { Icon } from "@/components/Icon";
import { PageHeader } from "@/components/PageHeader";
import { ProblemNote } from "@/components/ProblemNote";
import { SkeletonRows } from "@/components/Skeleton";
import { classes } from "@/components/classes";
import { VirtualRows } from "@/components/VirtualRows";
import { useRowKeys } from "@/state/rowKeys";
import { useShortcut } from "@/state/shortcuts";
import { useUrlState } from "@/state/urlState";
import { useZone } from "@/state/zone";
import { counted } from "@/time/format";
import { BulkBar } from "./BulkBar";
import { FilterBar } from "./FilterBar";
import { ListHead } from "./ListHead";
import { ScheduleRow } from "./ScheduleRow";
import { type Filters, filtersOf, isFiltered, queryOf, searchOf } from "./filters";
import { useScheduleRows } from "./useScheduleRows";
import { useSelection } from "./useSelection";
import { useSight } from "./useSight";
import { useTurning } from "./useTurning";

export function SchedulesPage() {
  const [search, setSearch] = useUrlState();
  const filters = filtersOf(search);
  const change = useCallback((changes: Partial<Filters>) => setSearch(searchOf(changes)), [setSearch]);
  const [found, setFound] = useState<number | null>(null);
  const isBlank = found === 0 && !isFiltered(filters);
  return (
    <>
      <PageHeader
        title="Schedules"
        description={found === null ? "\u00a0" : countText(found, filters)}
        actions={<NewButton />}
      />
      {!isBlank && <FilterBar filters={filters} onChange={change} />}
      <List filters={filters} onChange={change} onFound={setFound} />
    </>
  );
}

interface ListProps {
  filters: Filters;
  onChange: (changes: Partial<Filters>) => void;
  onFound: (total: number | null) => void;
}

function List({ filters, onChange, onFound }: ListProps) {
  const {
    rows,
    total,
    missing,
    pending,
    error,
    hasMore,
    loadingMore,
    more,
    onSight,
    refetch,
  } = useScheduleRows(queryOf(filters));
  const onDrawn = useSight(onSight);
  const may = useMay("operator");
  useEffect(() => {
    if (total !== null) onFound(total);
  }, [total, onFound]);
  const names = useMemo(() => rows.map((row) => row.schedule.name), [rows]);
  const selection = useSelection(names);
  // What is selected must be in the list: an action on rows that nobody sees would be a surprise.
  const { clear } = selection;
  const { q, state, project, owner } = filters;
  useEffect(() => clear(), [clear, q, state, project, owner]);
  const { resolve } = useZone();
  const navigate = useNavigate();
  const turning = useTurning();

  const words = { noun: "schedule", group: "Schedules" };
  const walked = useRowKeys(names, (name) => void navigate({ to: "/schedules/$name", params: { name } }), words);
  useShortcut(
    "x",
    () => walked.at !== null && selection.toggle(walked.at, !selection.names.has(walked.at), false),
    { label: "Select the schedule", group: words.group },
  );
  const empty = total === 0 && rows.length === 0;

  return (
    <>
      {error !== null && (
        <div className="mb-3">
          <ProblemNote error={error} onRetry={refetch} />
        </div>
      )}
      <div
        className={classes(
          "overflow-clip rounded-lg border border-line bg-surface transition-opacity",
          pending && rows.length > 0 && "opacity-60",
        )}
      >
        {pending && error === null && rows.length === 0 && <SkeletonRows rows={10} />}
        {empty &&
          (isFiltered(filters) ? (
            <NoMatch onClear={() => onChange({ q: "", state: "", project: "", owner: "" })} />
          ) : (
            <NoSchedules />
          ))}
        {rows.length > 0 && (
          <>
            <ListHead
              sort={filters.sort}
              onSort={(sort) => onChange({ sort })}
              loaded={names.length}
              selected={selection.names.size}
              onSelectAll={(all) => (all ? selection.set(names) : selection.clear())}
            />
            <VirtualRows
              label="Schedules"
              items={rows}
              missing={missing}
              rowKey={(row) => row.schedule.id}
              estimate={57}
              hasMore={hasMore}
              onEnd={more}
              focused={walked.place}
              row={({ schedule, page }) => (
                <ScheduleRow
                  schedule={schedule}
                  selected={selection.names.has(schedule.name)}
                  focused={schedule.name === walked.at}
                  zone={resolve(schedule.zone)}
                  why={may.reason}
                  page={page}
                  turningOn={turning.isTurningOn(schedule.name)}
                  onDrawn={onDrawn}
                  onSelect={selection.toggle}
                  onTurn={turning.turn}
                  claim={walked.claim}
                />
              )}
            />
            {loadingMore && missing === 0 && <SkeletonRows rows={2} />}
          </>
        )}
      </div>
      <BulkBar names={[...selection.names]} onClear={selection.clear} onDone={selection.set} />
      {turning.dialogs}
    </>
  );
}

function countText(total: number, filters: Filters): string {
  return isFiltered(filters) ? `${counted(total, "schedule")} found` : counted(total, "schedule");
}

function NewButton() {
  const may = useMay("operator");
  if (!may.allowed) {
    return (
      <Button variant="primary" icon="plus" why={may.reason}>
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

function NoSchedules() {
  return (
    <EmptyState
      icon="calendar"
      title="No schedules yet"
      text="A schedule says what to run, when, and by which policy. Create one here, or on the command line:"
      command={'ostinato schedule add hello "every 5m" --shell "echo hello"'}
      action={<NewButton />}
    />
  );
}

function NoMatch({ onClear }: { onClear: () => void }) {
  return (
    <EmptyState
      icon="search"
      title="No schedule matches these filters"
      action={<Button onClick={onClear}>Clear filters</Button>}
    />
  );
}
