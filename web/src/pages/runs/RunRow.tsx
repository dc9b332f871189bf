import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Run } from "@/api/types";
import { classes } from "@/components/classes";
import { RunDuration } from "@/components/Duration";
import { RunStateBadge } from "@/components/RunStateBadge";
import { Time } from "@/components/Time";
import { plainText } from "@/components/output/ansi";
import { shownState } from "@/components/stateLook";
import { totalsText } from "@/pages/run/Totals";
import { useRowFocus } from "@/state/rowKeys";

const COLUMNS =
  "lg:grid lg:grid-cols-[minmax(0,1.3fr)_7rem_8.5rem_8.5rem_5rem_5rem_minmax(0,1.5fr)] lg:items-center lg:gap-x-3";

export function RunsHead() {
  return (
    <div
      aria-hidden="true"
      className={classes("border-b border-line bg-sunken px-4 py-1.5 text-xs text-muted max-lg:hidden", COLUMNS)}
    >
      {["Run", "State", "Due", "Started", "Took", "Trigger", "Reason and totals"].map((name) => (
        <span key={name}>{name}</span>
      ))}
    </div>
  );
}

interface Props {
  run: Run;
  focused: boolean;
  claim: (id: number) => boolean;
}

/** One run; on a narrow screen its times are named, for there is no head. */
export function RunRow({ run, focused, claim }: Props) {
  const link = useRowFocus(run.id, focused, claim);
  // The totals say how many errors there were.
  const said = shownState(run) === "errors" ? "" : plainText(run.reason ?? "");
  const reason = [said, totalsText(run.totals)].filter((text) => text !== "").join(" · ");
  return (
    <Link
      ref={link}
      to="/runs/$id"
      params={{ id: String(run.id) }}
      className={classes(
        "flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-2 text-sm hover:bg-sunken focus-visible:-outline-offset-2",
        focused && "bg-accent-soft",
        COLUMNS,
      )}
    >
      <span className="flex min-w-0 items-baseline gap-2 max-lg:flex-1 max-lg:basis-40">
        <span className="truncate font-medium">{nameOf(run)}</span>
        <span className="text-xs whitespace-nowrap text-muted tabular-nums">run {run.id}</span>
      </span>
      <span>
        <RunStateBadge run={run} />
      </span>
      <span className="basis-full lg:hidden" />
      <Cell name="due">
        <Time at={run.due_at} zone={run.zone} seconds />
      </Cell>
      <Cell name="started">
        <Time at={run.started_at} zone={run.zone} seconds />
      </Cell>
      <Cell name="took">
        <RunDuration run={run} />
      </Cell>
      <span className="text-xs text-muted">{run.trigger.replace("_", "-")}</span>
      <span className="min-w-0 truncate text-xs text-muted max-lg:basis-full" title={reason}>
        {reason}
      </span>
    </Link>
  );
}

function Cell({ name, children }: { name: string; children: ReactNode }) {
  return (
    <span className="min-w-0 text-muted max-lg:text-xs">
      <span className="lg:hidden">{name} </span>
      {children}
    </span>
  );
}

function nameOf(run: Run): string {
  return run.schedule ?? run.task ?? run.session ?? `${run.work.kind} work`;
}
