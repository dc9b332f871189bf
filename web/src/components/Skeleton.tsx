/** The shape of what is on its way. */

import { classes } from "@/components/classes";

export function Skeleton({ className = "h-4 w-32" }: { className?: string }) {
  return <span aria-hidden="true" className={classes("skeleton block rounded", className)} />;
}

const WIDTHS = ["w-2/5", "w-1/3", "w-1/2", "w-1/4"];

/** Rows of a list. */
export function SkeletonRows({ rows = 5 }: { rows?: number }) {
  return (
    <div role="status" aria-label="Loading" className="divide-y divide-line">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="flex items-center gap-4 px-4 py-3">
          <Skeleton className={`h-3.5 ${WIDTHS[row % WIDTHS.length] ?? ""}`} />
          <Skeleton className="ml-auto h-3.5 w-16" />
        </div>
      ))}
    </div>
  );
}

/** A grid of boxes. */
export function SkeletonCards({ cards = 3 }: { cards?: number }) {
  return (
    <div role="status" aria-label="Loading" className="grid gap-4 sm:grid-cols-2 xl:grid-cols-3">
      {Array.from({ length: cards }, (_, card) => (
        <div key={card} className="flex flex-col gap-3 rounded-lg border border-line bg-surface p-4">
          <Skeleton className="h-4 w-1/3" />
          <Skeleton className="h-3 w-full" />
          <Skeleton className="h-3 w-2/3" />
        </div>
      ))}
    </div>
  );
}
