/** The attempts of a run, the latest last, each with its own error and times. */

import type { Attempt } from "@/api/types";
import { Duration } from "@/components/Duration";
import { StateBadge } from "@/components/StateBadge";
import { Time } from "@/components/Time";
import { ErrorText } from "./ErrorText";

export function AttemptList({ attempts, zone }: { attempts: readonly Attempt[]; zone: string }) {
  return (
    <ol className="divide-y divide-line">
      {attempts.map((attempt, index) => (
        <li key={attempt.started_at} className="px-4 py-2.5">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
            <span className="font-medium tabular-nums">{index + 1}</span>
            <StateBadge state={attempt.state} />
            <Time at={attempt.started_at} zone={zone} seconds />
            {attempt.finished_at !== null && (
              <Duration seconds={(Date.parse(attempt.finished_at) - Date.parse(attempt.started_at)) / 1000} />
            )}
            {attempt.node !== null && (
              <span className="ml-auto truncate font-mono text-xs text-muted">{attempt.node}</span>
            )}
          </div>
          {attempt.error !== null && <ErrorText text={attempt.error} />}
        </li>
      ))}
    </ol>
  );
}
