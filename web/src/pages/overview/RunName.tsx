/** What a run is called: its schedule, else its task, with links to both of them. What is no more has no link. */

import { Link } from "@tanstack/react-router";
import type { Run } from "@/api/types";

type Named = Pick<Run, "id" | "schedule" | "schedule_id" | "task" | "session">;

export function RunName({ run }: { run: Named }) {
  return (
    <span className="flex min-w-0 items-baseline gap-2">
      {run.schedule === null || run.schedule_id === null ? (
        <Link to="/runs/$id" params={{ id: String(run.id) }} className="truncate rounded font-medium hover:underline">
          {run.schedule ?? run.task ?? run.session ?? "run"}
        </Link>
      ) : (
        <Link
          to="/schedules/$name"
          params={{ name: run.schedule }}
          className="truncate rounded font-medium hover:underline"
        >
          {run.schedule}
        </Link>
      )}
      <Link
        to="/runs/$id"
        params={{ id: String(run.id) }}
        className="rounded text-xs whitespace-nowrap text-muted tabular-nums hover:text-ink hover:underline"
      >
        run {run.id}
      </Link>
    </span>
  );
}
