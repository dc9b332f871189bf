/** All runs, newest first: of schedules, of tasks that were enqueued, of sessions. */

import { useNavigate } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { itemsOf } from "@/api/queries/pages";
import { useRuns } from "@/api/queries/runs";
import { Button } from "@/components/Button";
import { classes } from "@/components/classes";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { ProblemNote } from "@/components/ProblemNote";
import { SkeletonRows } from "@/components/Skeleton";
import { VirtualRows } from "@/components/VirtualRows";
import { useShortcut } from "@/state/shortcuts";
import { useUrlState } from "@/state/urlState";
import { RunFilterBar } from "./RunFilterBar";
import { RunRow, RunsHead } from "./RunRow";
import { NO_FILTERS, type RunFilters, filtersOf, isFiltered, queryOf } from "./runFilters";

export function RunsPage() {
  const [search, setSearch] = useUrlState();
  const filters = filtersOf(search);
  const change = useCallback((changes: Partial<RunFilters>) => setSearch(changes), [setSearch]);
  return (
    <>
      <PageHeader title="Runs" description="What was due, asked for or sent, the newest first." />
      <RunFilterBar filters={filters} onChange={change} />
      <List filters={filters} onClear={() => change(NO_FILTERS)} />
    </>
  );
}

function List({ filters, onClear }: { filters: RunFilters; onClear: () => void }) {
  const query = useRuns(queryOf(filters));
  const runs = itemsOf(query.data);
  const [focused, setFocused] = useState(-1);
  const navigate = useNavigate();
  const group = "Runs";
  useShortcut("j", () => setFocused((before) => Math.min(before + 1, runs.length - 1)), { label: "Next run", group });
  useShortcut("k", () => setFocused((before) => Math.max(before - 1, 0)), { label: "Previous run", group });
  useShortcut(
    "o",
    () => {
      const run = runs[focused];
      if (run !== undefined) void navigate({ to: "/runs/$id", params: { id: String(run.id) } });
    },
    { label: "Open the run", group },
  );
  return (
    <>
      {query.error !== null && (
        <div className="mb-3">
          <ProblemNote error={query.error} onRetry={() => void query.refetch()} />
        </div>
      )}
      <div
        className={classes(
          "overflow-clip rounded-lg border border-line bg-surface transition-opacity",
          query.isPlaceholderData && "opacity-60",
        )}
      >
        {query.isPending && <SkeletonRows rows={10} />}
        {query.isSuccess && runs.length === 0 && (isFiltered(filters) ? <NoMatch onClear={onClear} /> : <NoRuns />)}
        {runs.length > 0 && (
          <>
            <RunsHead />
            <VirtualRows
              label="Runs"
              items={runs}
              rowKey={(run) => run.id}
              estimate={38}
              hasMore={query.hasNextPage}
              onEnd={() => !query.isFetchingNextPage && void query.fetchNextPage()}
              focused={focused}
              row={(run, place) => <RunRow run={run} focused={place === focused} />}
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
      text="Every due time of a schedule makes a run. To make one now:"
      command="ostinato schedule trigger NAME"
    />
  );
}

function NoMatch({ onClear }: { onClear: () => void }) {
  return (
    <EmptyState
      icon="search"
      title="No run fits these filters"
      action={<Button onClick={onClear}>Clear the filters</Button>}
    />
  );
}
