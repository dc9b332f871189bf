/** What is under way, how far it is, and a button that stops it. */

import { Suspense, lazy, useState } from "react";
import { loadFile } from "@/api/files";
import { useMay } from "@/api/queries/me";
import type { Run } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { RunDuration } from "@/components/Duration";
import { IconButton } from "@/components/IconButton";
import { ProgressBar } from "@/components/ProgressBar";
import { RunName } from "@/pages/overview/RunName";
import { shownOf } from "@/time/format";

// What the page opens with does not wait for it.
const loadCancel = () => loadFile(() => import("@/pages/run/CancelDialog"));
const CancelDialog = lazy(async () => ({ default: (await loadCancel()).CancelDialog }));

interface RunningCardProps {
  runs: Run[];
  total: number;
}

export function RunningCard({ runs, total }: RunningCardProps) {
  const [stopping, setStopping] = useState<Run | null>(null);
  return (
    <Card title="Running now" aside={shownOf(runs.length, total)} flush>
      {runs.length === 0 ? (
        <p className="px-4 py-6 text-center text-sm text-muted">Nothing is running.</p>
      ) : (
        <ul className="divide-y divide-line">
          {runs.map((run) => (
            <RunningRow key={run.id} run={run} onStop={() => setStopping(run)} />
          ))}
        </ul>
      )}
      <Suspense>
        {stopping !== null && <CancelDialog key={stopping.id} run={stopping} onClose={() => setStopping(null)} />}
      </Suspense>
    </Card>
  );
}

function RunningRow({ run, onStop }: { run: Run; onStop: () => void }) {
  const may = useMay("operator");
  const isCancelling = run.cancelling !== null;
  return (
    <li className="flex items-center gap-3 px-4 py-2.5">
      <div className="min-w-0 flex-1">
        <div className="flex items-center gap-2 text-sm">
          <RunName run={run} />
          {isCancelling && <Badge tone="warn">cancelling…</Badge>}
          {run.attempt > 1 && <Badge tone="warn">attempt {run.attempt}</Badge>}
          <span className="ml-auto text-xs text-muted">
            <RunDuration run={run} />
          </span>
        </div>
        <div className="mt-1.5">
          <ProgressBar progress={run.progress} label={`Progress of run ${run.id}`} />
        </div>
      </div>
      <IconButton
        icon="stop"
        label={`Cancel run ${run.id}`}
        tone="danger"
        why={may.reason ?? (isCancelling ? "It was told to stop." : undefined)}
        onClick={onStop}
      />
    </li>
  );
}
