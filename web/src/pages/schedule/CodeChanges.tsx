import { useMay } from "@/api/queries/me";
import { useRevert } from "@/api/queries/schedules";
import type { FieldChange, Schedule } from "@/api/types";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Time } from "@/components/Time";
import { useProblemToast, useToast } from "@/components/Toast";

/** Of a schedule that code declares: what people changed, with a way back to what the code says, and what the code did. */
export function CodeChanges({ schedule }: { schedule: Schedule }) {
  const may = useMay("operator");
  const revert = useRevert();
  const say = useToast();
  const tell = useProblemToast();
  const back = (fields: string[] | null) =>
    revert
      .mutateAsync({ ref: schedule.name, fields })
      .then(() => say({ title: `${schedule.name} is as the code says` }))
      .catch(tell("It could not be given back to the code"));
  const byPeople = schedule.changes.filter((change) => change.by !== null);
  if (schedule.changes.length === 0) return null;
  return (
    <Card
      title="Changed"
      actions={
        byPeople.length > 1 ? (
          <Button size="small" why={may.reason} busy={revert.isPending} onClick={() => void back(null)}>
            All back to the code’s
          </Button>
        ) : undefined
      }
    >
      <ul className="flex flex-col gap-2 text-sm">
        {schedule.changes.map((change) => (
          <li key={change.field} className="flex flex-wrap items-center justify-between gap-2">
            <span className="min-w-0 break-words">
              {whatOf(change)} by {change.by ?? "code"} <Time at={change.at} zone={schedule.zone} />
              {change.by !== null && `; code says ${change.code}`}
            </span>
            {change.by !== null && (
              <Button
                size="small"
                why={may.reason}
                busy={revert.isPending}
                aria-label={`Back to the code’s ${change.field}`}
                onClick={() => void back([change.field])}
              >
                Back to the code’s
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function whatOf(change: FieldChange): string {
  return change.field === "enabled" ? `switched ${change.value}` : change.field;
}
