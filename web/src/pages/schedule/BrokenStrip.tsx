import { Link } from "@tanstack/react-router";
import { useMay } from "@/api/queries/me";
import type { BlockedBy, Schedule } from "@/api/types";
import { buttonClass } from "@/components/Button";
import { ErrorText } from "@/components/output/ErrorText";
import type { Turning } from "../schedules/useTurning";
import { BlockedStrip } from "./BlockedStrip";

interface Props {
  schedule: Schedule;
  blocked: BlockedBy;
  turning: Turning;
}

/** A broken schedule: the strip that says so everywhere, the last error, and the way to put it right. */
export function BrokenStrip({ schedule, blocked, turning }: Props) {
  const may = useMay("operator");
  const last = schedule.last_run;
  const fix = may.allowed && (
    <Link
      to="/schedules/$name/edit"
      params={{ name: schedule.name }}
      search={{ fix: "1" }}
      className={buttonClass("primary", "small")}
    >
      Fix and re-enable
    </Link>
  );
  return (
    <BlockedStrip blocked={blocked} zone={schedule.zone} turning={turning} actions={fix}>
      {last !== null && (
        <>
          <p className="mt-1">
            {last.error === null ? "The last run was " : "The error of the last run, "}
            <Link to="/runs/$id" params={{ id: String(last.id) }} className="font-medium text-accent hover:underline">
              run {last.id}
            </Link>
            {last.error === null ? "." : ":"}
          </p>
          {last.error !== null && <ErrorText text={last.error} />}
        </>
      )}
    </BlockedStrip>
  );
}
