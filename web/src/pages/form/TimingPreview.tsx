/** What the server understands of a timing, while it is typed: a sentence and the next times, or the place of the error. */

import { type ReactNode, useEffect, useState } from "react";
import { ProblemError } from "@/api/client";
import { useTimingPreview } from "@/api/queries/schedules";
import type { FieldProblem } from "@/api/types";
import { Button } from "@/components/Button";
import { Icon } from "@/components/Icon";
import { ProblemNote } from "@/components/ProblemNote";
import { Skeleton } from "@/components/Skeleton";
import { classes } from "@/components/classes";
import { useNow } from "@/state/ticker";
import { useZone } from "@/state/zone";
import { formatFull, formatRelative, formatTime } from "@/time/format";
import { draftOf, marker } from "./timingText";

const REST_MS = 200;

/** The value after it has rested. */
function useRested<T>(value: T, milliseconds: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return rested;
}

interface Props {
  text: string;
  zone: string;
  /** Of the schedule: an H of cron is chosen by it. */
  name: string;
  onUse: (text: string) => void;
}

export function TimingPreview({ text, zone, name, onUse }: Props) {
  const asked = useRested(text.trim(), REST_MS);
  const named = useRested(name.trim(), REST_MS);
  const isSpread = /(^|[\s,])h([\s,/(]|$)/i.test(asked);
  const query = useTimingPreview(
    asked,
    zone === "" ? undefined : zone,
    isSpread && named !== "" ? named : undefined,
  );
  if (text.trim() === "") {
    return (
      <Box>
        Type a timing, such as <code className="font-mono">every 5m</code> or{" "}
        <code className="font-mono">weekdays 09:30 except 12-25</code>.
      </Box>
    );
  }
  if (query.error instanceof ProblemError && query.error.status === 422) {
    const [problem] = query.error.problem.errors ?? [];
    return <Wrong text={asked} problem={problem ?? { field: null, message: query.error.message }} onUse={onUse} />;
  }
  if (query.error !== null) return <ProblemNote error={query.error} onRetry={() => void query.refetch()} />;
  if (query.data === undefined) {
    return (
      <Box>
        <Skeleton className="mb-2 h-4 w-56" />
        <Skeleton className="h-3 w-72" />
      </Box>
    );
  }
  return (
    <div className={classes("transition-opacity", (query.isPlaceholderData || asked !== text.trim()) && "opacity-60")}>
      <Box>
        {/* Only what the timing means is read out: the countdown below it would be every second. */}
        <p aria-live="polite" className="font-medium text-ink">
          {query.data.sentence}
        </p>
        <NextTimes times={query.data.next} zone={query.data.zone} />
      </Box>
      <div aria-live="polite">{query.data.remarks.length > 0 && <Remarks remarks={query.data.remarks} />}</div>
    </div>
  );
}

function Box({ children }: { children: ReactNode }) {
  return <div className="rounded-lg border border-line bg-sunken px-3.5 py-2.5 text-sm text-muted">{children}</div>;
}

function NextTimes({ times, zone }: { times: readonly string[]; zone: string }) {
  const { resolve } = useZone();
  const now = useNow();
  const shown = resolve(zone);
  if (times.length === 0) return <p className="mt-1 text-warn">This timing has no due time in the future.</p>;
  return (
    <>
      <p className="mt-1.5 text-xs">
        Next, in <span className="font-medium text-ink">{shown}</span>
      </p>
      <ol className="mt-1 flex flex-col gap-0.5 text-xs">
        {times.map((at, index) => {
          const moment = Date.parse(at);
          return (
            <li key={at} className="flex gap-3 tabular-nums">
              <time dateTime={at} title={formatFull(moment, shown)}>
                {formatTime(moment, shown, now, !at.endsWith(":00Z"))}
              </time>
              {index === 0 && moment > now && <span>{formatRelative(moment, now)}</span>}
            </li>
          );
        })}
      </ol>
    </>
  );
}

function Remarks({ remarks }: { remarks: readonly string[] }) {
  return (
    <div className="mt-2 flex gap-2 rounded-lg border border-warn/35 bg-warn-soft px-3.5 py-2.5 text-xs">
      <Icon name="clock" size={14} className="mt-0.5 text-warn" />
      <ul className="flex flex-col gap-1">
        {remarks.map((remark) => (
          <li key={remark}>{remark}</li>
        ))}
      </ul>
    </div>
  );
}

/** The text with a mark below the wrong place, the message, and what would be right. */
function Wrong({ text, problem, onUse }: { text: string; problem: FieldProblem; onUse: (text: string) => void }) {
  const marked = marker(text, problem.position);
  return (
    <div role="alert" className="rounded-lg border border-bad/35 bg-bad-soft px-3.5 py-2.5 text-sm">
      {marked !== null && (
        <pre data-testid="marker" className="mb-1.5 overflow-x-auto font-mono text-xs leading-4 text-ink">
          {marked.text}
          {"\n"}
          <span aria-hidden="true" className="font-bold text-bad">
            {marked.caret}
          </span>
        </pre>
      )}
      <p className="text-bad">{problem.message}</p>
      {problem.hint && (
        <p className="mt-1 flex flex-wrap items-center gap-2 text-xs text-muted">
          {marked === null ? (
            <span className="min-w-0 break-words">{problem.hint}</span>
          ) : (
            <span>
              Try <code className="font-mono text-ink">{problem.hint}</code>
            </span>
          )}
          {draftOf(problem.hint) !== null && (
            <Button size="small" onClick={() => onUse(problem.hint ?? "")}>
              Use this
            </Button>
          )}
        </p>
      )}
    </div>
  );
}
