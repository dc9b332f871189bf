/** The latest runs that failed, with a button that runs them again. */

import { Link } from "@tanstack/react-router";
import { useMay } from "@/api/queries/me";
import { useRetryRun } from "@/api/queries/runs";
import type { Run } from "@/api/types";
import { Card } from "@/components/Card";
import { Icon } from "@/components/Icon";
import { IconButton } from "@/components/IconButton";
import { Ago } from "@/components/Time";
import { useProblemToast, useToast } from "@/components/Toast";
import { RunName } from "@/pages/overview/RunName";

export function FailedCard({ runs }: { runs: Run[] }) {
  if (runs.length === 0) return null;
  return (
    <Card title="Recently failed" aside="in the last 24 hours" flush>
      <ul className="divide-y divide-line">
        {runs.map((run) => (
          <FailedRow key={run.id} run={run} />
        ))}
      </ul>
    </Card>
  );
}

function FailedRow({ run }: { run: Run }) {
  const may = useMay("operator");
  const retry = useRetryRun();
  const say = useToast();
  const problem = useProblemToast();
  const press = (): void =>
    retry.mutate(
      { id: run.id },
      {
        onSuccess: (made) => say({ title: `Run ${made.id} is queued` }),
        onError: problem(`Run ${run.id} could not be retried`),
      },
    );
  return (
    <li className="flex items-center gap-3 px-4 py-2 text-sm">
      <Icon name="cross" className="text-bad" />
      <div className="min-w-0 flex-1">
        <div className="flex items-baseline gap-2">
          <RunName run={run} />
          <span className="ml-auto text-xs text-muted">
            <Ago at={run.finished_at ?? run.due_at} zone={run.zone} />
          </span>
        </div>
        <Link
          to="/runs/$id"
          params={{ id: String(run.id) }}
          tabIndex={-1}
          className="block truncate text-xs text-muted"
        >
          {run.reason ?? run.error}
        </Link>
      </div>
      <IconButton
        icon="refresh"
        label={`Retry run ${run.id}`}
        why={may.reason}
        busy={retry.isPending}
        onClick={press}
      />
    </li>
  );
}
