import { HATCHED } from "@/components/charts/Gantt";
import { classes } from "@/components/classes";
import { Icon } from "@/components/Icon";
import { look } from "@/components/stateLook";

const STATES = ["succeeded", "errors", "failed", "running", "queued", "cancelled", "skipped"];

/** What the bars mean. */
export function Legend({ unknown }: { unknown: boolean }) {
  const missed = look("missed").color;
  return (
    <ul aria-label="What the bars mean" className="mt-3 flex flex-wrap gap-x-4 gap-y-1 text-xs text-muted">
      {STATES.map((state) => (
        <li key={state} className="flex items-center gap-1.5">
          <span
            aria-hidden="true"
            className={classes(
              "flex w-4 items-center justify-center rounded-xs text-surface",
              state === "failed" ? "h-4.5" : state === "errors" ? "h-3.5" : "h-3",
            )}
            style={{ backgroundColor: look(state).color }}
          >
            {(state === "failed" || state === "errors") && <Icon name={look(state).icon} size={12} />}
          </span>
          {look(state).label}
        </li>
      ))}
      <li className="flex items-center gap-1.5">
        <span
          aria-hidden="true"
          className="h-3 w-4 rounded-xs"
          style={{
            border: `1px solid ${missed}`,
            background: `repeating-linear-gradient(135deg, ${missed} 0 2px, transparent 2px 5px)`,
          }}
        />
        missed
      </li>
      <li className="flex items-center gap-1.5">
        <span aria-hidden="true" className="h-3 w-2.5 rounded-xs border-[1.5px] border-dashed border-muted" />
        due
      </li>
      {unknown && (
        <li className="flex items-center gap-1.5">
          <span aria-hidden="true" className="h-3 w-4 rounded-xs border border-line" style={{ background: HATCHED }} />
          not counted
        </li>
      )}
    </ul>
  );
}
