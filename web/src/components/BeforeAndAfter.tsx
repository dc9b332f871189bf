/** What comes before and after something, as a small graph: before it on the left, after it on the right. */

import type { ReactNode } from "react";
import { Card } from "@/components/Card";

export interface Neighbour {
  key: string | number;
  shown: ReactNode;
}

/** Nothing for what comes neither before nor after anything. */
export function BeforeAndAfter({ name, before, after }: { name: string; before: Neighbour[]; after: Neighbour[] }) {
  if (before.length + after.length === 0) return null;
  return (
    <Card title="Before and after">
      <div className="flex flex-col gap-2 sm:flex-row sm:items-stretch">
        <Side label="Runs after" neighbours={before} />
        {before.length > 0 && <Arrow />}
        <div className="flex min-w-0 flex-1 items-center rounded-md border-2 border-accent px-3 py-2 text-sm font-semibold">
          <span className="min-w-0 break-words">{name}</span>
        </div>
        {after.length > 0 && <Arrow />}
        <Side label="Followed by" neighbours={after} />
      </div>
    </Card>
  );
}

function Side({ label, neighbours }: { label: string; neighbours: readonly Neighbour[] }) {
  if (neighbours.length === 0) return null;
  return (
    <ul aria-label={label} className="flex min-w-0 flex-1 flex-col justify-center gap-2">
      {neighbours.map((each) => (
        <li key={each.key} className="min-w-0 rounded-md border border-line px-3 py-2 text-sm">
          {each.shown}
        </li>
      ))}
    </ul>
  );
}

function Arrow() {
  return (
    <span aria-hidden="true" className="self-center text-muted">
      <span className="hidden sm:inline">→</span>
      <span className="sm:hidden">↓</span>
    </span>
  );
}
