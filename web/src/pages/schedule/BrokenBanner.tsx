import { Link } from "@tanstack/react-router";
import { useMay } from "@/api/queries/me";
import type { Schedule } from "@/api/types";
import { Banner } from "@/components/Banner";
import { Button, buttonClass } from "@/components/Button";
import { ErrorText } from "@/components/output/ErrorText";
import { Time } from "@/components/Time";
import { brokenText } from "../schedules/scheduleState";
import type { Turning } from "../schedules/useTurning";

/** A broken schedule: why, the last error, and the two ways back. */
export function BrokenBanner({ schedule, turning }: { schedule: Schedule; turning: Turning }) {
  const may = useMay("operator");
  const last = schedule.last_run;
  return (
    <Banner
      tone="bad"
      title={`Broken: ${brokenText(schedule)}`}
      actions={
        <>
          <Button
            why={may.reason}
            busy={turning.isTurningOn(schedule.name)}
            onClick={() => turning.turn({ name: schedule.name, to: "on" })}
          >
            Re-enable
          </Button>
          {may.allowed && (
            <Link
              to="/schedules/$name/edit"
              params={{ name: schedule.name }}
              search={{ fix: "1" }}
              className={buttonClass("primary")}
            >
              Fix and re-enable
            </Link>
          )}
        </>
      }
    >
      {schedule.probe_at !== null && (
        <p className="mt-0.5">
          Probes at <Time at={schedule.probe_at} zone={schedule.zone} seconds />: if that run succeeds, it is on again.
        </p>
      )}
      {last !== null && (
        <>
          <p className="mt-0.5">
            {last.error === null ? "The last run was " : "The error of the last run, "}
            <Link to="/runs/$id" params={{ id: String(last.id) }} className="font-medium text-accent hover:underline">
              run {last.id}
            </Link>
            {last.error === null ? "." : ":"}
          </p>
          {last.error !== null && <ErrorText text={last.error} />}
        </>
      )}
    </Banner>
  );
}
