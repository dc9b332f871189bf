import type { Run } from "@/api/types";
import { plainText } from "@/components/output/ansi";
import { shownState } from "@/components/stateLook";
import { totalName, totalText } from "../run/Totals";

/** `copied 12 · skipped 3 · errors 0`, or why there is nothing to count. */
export function TotalsLine({ run }: { run: Run }) {
  const totals = Object.entries(run.totals);
  // The totals say how many errors there were.
  const said = shownState(run) === "errors" ? null : (run.reason ?? run.error?.trimEnd().split("\n").at(-1) ?? null);
  const note = said === null ? null : plainText(said);
  if (totals.length === 0 && note === null) return null;
  return (
    <p className="mt-1 flex flex-wrap gap-x-3 text-xs text-muted">
      {totals.map(([name, value]) => (
        <span key={name} className={`min-w-0 ${name === "errors" && value > 0 ? "font-medium text-bad" : ""}`}>
          {totalName(name)} <span className="tabular-nums">{totalText(name, value)}</span>
        </span>
      ))}
      {note !== null && <span className="truncate">{note}</span>}
    </p>
  );
}
