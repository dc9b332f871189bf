import type { Schedule } from "@/api/types";
import { Banner } from "@/components/Banner";
import { ErrorText } from "@/components/output/ErrorText";
import { brokenText } from "../schedules/scheduleState";

/** What broke the schedule, above the form that puts it right. */
export function FixBanner({ schedule }: { schedule: Schedule }) {
  const error = schedule.last_run?.error;
  return (
    <Banner tone="bad" title={schedule.broken === null ? "This schedule is already on again" : `Broken: ${brokenText(schedule)}`}>
      <p className="mt-0.5">Fix the problem and save: saving switches the schedule on again.</p>
      {error != null && <ErrorText text={error} />}
    </Banner>
  );
}
