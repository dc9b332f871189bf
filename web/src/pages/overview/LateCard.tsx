/** Runs that are ready but wait: for room in a lane, their turn, or a node. */

import { Link } from "@tanstack/react-router";
import type { Run } from "@/api/types";
import { Card } from "@/components/Card";
import { Ago } from "@/components/Time";
import { RunName } from "@/pages/overview/RunName";
import { useNow } from "@/state/ticker";
import { useZone } from "@/state/zone";
import { shownOf } from "@/time/format";
import { inZone } from "@/time/inZone";

interface LateCardProps {
  runs: Run[];
  total: number;
}

export function LateCard({ runs, total }: LateCardProps) {
  const { resolve } = useZone();
  const now = useNow(60_000);
  return (
    <Card title="Late" aside={shownOf(runs.length, total)} flush>
      <ul className="divide-y divide-line">
        {runs.map((run) => (
          <li key={run.id} className="flex flex-wrap items-center gap-x-3 px-4 py-2 text-sm">
            <RunName run={run} />
            <span className="min-w-0 truncate text-xs text-muted">
              {run.reason === null ? (
                <WaitsFor lane={run.lane} />
              ) : (
                inZone(run.reason, resolve(run.zone), now)
              )}
            </span>
            <span className="ml-auto text-xs text-warn">
              ready <Ago at={run.ready_at} zone={run.zone} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function WaitsFor({ lane }: { lane: string }) {
  return (
    <>
      waits for lane{" "}
      <Link to="/lanes" className="rounded hover:underline">
        {lane}
      </Link>
    </>
  );
}
