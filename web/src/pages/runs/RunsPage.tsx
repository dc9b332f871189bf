/** All runs, newest first: of schedules, of tasks that were enqueued, of sessions. */

import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { ProblemError } from "@/api/client";
import { itemsOf } from "@/api/queries/pages";
import { useRuns } from "@/api/queries/runs";
import { Button } from "@/components/Button";
import { classes } from "@/components/classes";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { ProblemNote } from "@/components/ProblemNote";
import { SkeletonRows } from "@/components/Skeleton";
import { endOf } from "@/components/rowsEnd";
import { VirtualRows } from "@/components/VirtualRows";
import { useRowKeys } from "@/state/rowKeys";
import { useUrlState } from "@/state/urlState";
import { counted } from "@/time/format";
import { RunFilterBar } from "./RunFilterBar";
import { RunRow, RunsHead } from "./RunRow";
import { NO_FILTERS, type RunFilters, filtersOf, isFiltered, queryOf } from "./runFilters";
import { useHeldBack } from "./useHeldBack";
import { useLookBack } from "./useLookBack";

export function RunsPage() {
  const [search, setSearch] = useUrlState();
  const filters = filtersOf(search);
  const change = useCallback((changes: Partial<RunFilters>) => setSearch(changes), [setSearch]);
  return (
    <>
      <PageHeader title="Runs" description="Everything that was due, triggered, enqueued or sent, newest first." />
      <RunFilterBar filters={filters} onChange={change} />
      <List filters={filters} onClear={() => change(NO_FILTERS)} />
    </>
  );
}

function List({ filters, onClear }: { filters: RunFilters; onClear: () => void }) {
  const wanted = queryOf(filters);
  const query = useRuns(wanted);
  // A run that has gone on to another state may be on a page that is kept.
  const runs = itemsOf(query.data).filter((run) => wanted.state?.includes(run.state) ?? true);
  // Half a name is no error: there is nothing of that name yet.
  const isUnknown = query.error instanceof ProblemError && query.error.status === 404;
  const search = useLookBack(query, runs.length === 0, JSON.stringify(wanted));
  const { shown, fresh } = useHeldBack(runs);
  const navigate = useNavigate();
  const walked = useRowKeys(
    shown.map((run) => run.id),
    (id) => void navigate({ to: "/runs/$id", params: { id: String(id) } }),
    { noun: "run", group: "Runs" },
  );
  return (
    <>
      {query.error !== null && !isUnknown && !query.isFetchNextPageError && (
        <div className="mb-3">
          <ProblemNote error={query.error} onRetry={() => void query.refetch()} />
        </div>
      )}
      {fresh > 0 && (
        <div className="sticky top-14 z-10 flex h-0 justify-center">
          <Button size="small" className="shadow-raised" onClick={() => window.scrollTo({ top: 0 })}>
            {counted(fresh, "new run")}
          </Button>
        </div>
      )}
      <div
        className={classes(
          "overflow-clip rounded-lg border border-line bg-surface transition-opacity",
          query.isPlaceholderData && "opacity-60",
        )}
      >
        {(query.isPending || search === "looking") && <SkeletonRows rows={10} />}
        {search === "failed" && (
          <div className="p-3">
            <ProblemNote error={query.error} onRetry={() => void query.fetchNextPage()} />
          </div>
        )}
        {typeof search === "function" && <NoneYet onFurther={search} onClear={onClear} />}
        {(query.isSuccess || isUnknown) && search === "over" && runs.length === 0 && (isFiltered(filters) ? <NoMatch onClear={onClear} /> : <NoRuns />)}
        {runs.length > 0 && (
          <>
            <RunsHead />
            <VirtualRows
              label="Runs"
              items={shown}
              rowKey={(run) => run.id}
              estimate={38}
              {...endOf(query)}
              focused={walked.place}
              row={(run) => <RunRow run={run} focused={run.id === walked.at} claim={walked.claim} />}
            />
            {query.isFetchingNextPage && <SkeletonRows rows={2} />}
          </>
        )}
      </div>
    </>
  );
}

function NoRuns() {
  return (
    <EmptyState
      icon="activity"
      title="Nothing has run yet"
      text="Every due time of a schedule becomes a run. To start one now:"
      command="ostinato schedule trigger NAME"
    />
  );
}

function NoneYet({ onFurther, onClear }: { onFurther: () => void; onClear: () => void }) {
  return (
    <EmptyState
      icon="search"
      title="None of the newest runs match these filters"
      text="There are older runs that were not looked through yet."
      action={
        <>
          <Button onClick={onFurther}>Look further back</Button>
          <Button onClick={onClear}>Clear filters</Button>
        </>
      }
    />
  );
}

function NoMatch({ onClear }: { onClear: () => void }) {
  return (
    <EmptyState
      icon="search"
      title="No run matches these filters"
      action={<Button onClick={onClear}>Clear filters</Button>}
    />
  );
}
