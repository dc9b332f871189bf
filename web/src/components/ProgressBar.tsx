/** How far a run is, as it told it: done of total, a text, or only that it is at it. */

import type { Progress } from "@/api/types";

interface ProgressBarProps {
  progress: Progress | null;
  label: string;
  /** Only the bar, without the words under it. */
  bare?: boolean;
}

export function ProgressBar({ progress, label, bare = false }: ProgressBarProps) {
  const done = progress?.done ?? null;
  const total = progress?.total ?? null;
  const share = done === null || total === null || total <= 0 ? null : Math.min(1, Math.max(0, done / total));
  const percent = share === null ? null : Math.floor(share * 100);
  const [doneText, totalText] = [done, total].map((count) => count?.toLocaleString("en-US"));
  return (
    <div className="min-w-0">
      <div
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent ?? undefined}
        aria-valuetext={progress?.text ?? undefined}
        className="h-1.5 overflow-hidden rounded-full bg-line"
      >
        {share === null ? (
          <div className="indeterminate h-full w-2/5 rounded-full bg-(--state-running)" />
        ) : (
          <div
            className="h-full rounded-full bg-(--state-running) transition-[width] duration-300"
            style={{ width: `${share * 100}%` }}
          />
        )}
      </div>
      {!bare && (percent !== null || progress?.text) && (
        <div className="mt-1 flex gap-2 text-xs text-muted tabular-nums">
          <span className="truncate">{progress?.text ?? ""}</span>
          <span className="ml-auto whitespace-nowrap">
            {percent === null ? doneText : `${doneText} of ${totalText} · ${percent} %`}
          </span>
        </div>
      )}
    </div>
  );
}
