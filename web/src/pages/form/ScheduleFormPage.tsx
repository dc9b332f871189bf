/** /schedules/new (also as a copy of another, ?from=NAME) and /schedules/NAME/edit (?fix=1 for a broken one). */

import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useKinds } from "@/api/queries/kinds";
import { useMay } from "@/api/queries/me";
import { useSchedule } from "@/api/queries/schedules";
import type { Kind, Schedule } from "@/api/types";
import { buttonClass } from "@/components/Button";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { SkeletonCards } from "@/components/Skeleton";
import { useUrlState } from "@/state/urlState";
import { ScheduleForm } from "./ScheduleForm";
import { type FormValues, NEW_VALUES, valuesOf } from "./formValues";

const LIST = { label: "All schedules", to: "/schedules" };

export function ScheduleFormPage() {
  const { name } = useParams({ strict: false });
  const [search] = useUrlState();
  const may = useMay("operator");
  const known = useKinds();
  if (may.reason !== undefined) return <Refused name={name} why={may.reason} />;
  if (known.isPending) return <SkeletonCards />;
  const kinds = known.data?.items.filter((kind) => kind.added) ?? [];
  if (name !== undefined) return <EditForm key={name} name={name} kinds={kinds} fix={search["fix"] === "1"} />;
  const from = search["from"];
  return from === undefined ? (
    <ScheduleForm schedule={null} initial={NEW_VALUES} kinds={kinds} />
  ) : (
    <CopyForm key={from} from={from} kinds={kinds} />
  );
}

/** Somebody who may only look came by the address: a form that cannot be saved would be a trap. */
function Refused({ name, why }: { name: string | undefined; why: string }) {
  return (
    <>
      <PageHeader
        title={name === undefined ? "New schedule" : `Edit ${name}`}
        crumbs={[{ label: "Schedules", to: "/schedules" }]}
      />
      <EmptyState
        icon="ban"
        title={why}
        action={
          <Link to="/schedules" className={buttonClass()}>
            Go to the schedules
          </Link>
        }
      />
    </>
  );
}

function CopyForm({ from, kinds }: { from: string; kinds: Kind[] }) {
  const query = useSchedule(from);
  return (
    <QueryView query={query} skeleton={<SkeletonCards />} page={{ title: "New schedule", list: LIST }}>
      {(schedule) => (
        <ScheduleForm
          schedule={null}
          initial={{ ...valuesOf(schedule, kinds), name: "", enabled: true }}
          kinds={kinds}
        />
      )}
    </QueryView>
  );
}

function EditForm({ name, kinds, fix }: { name: string; kinds: Kind[]; fix: boolean }) {
  const query = useSchedule(name);
  return (
    <QueryView query={query} skeleton={<SkeletonCards />} page={{ title: `Edit ${name}`, list: LIST }}>
      {(schedule) => <BegunForm schedule={schedule} kinds={kinds} fix={fix} />}
    </QueryView>
  );
}

/** The form keeps the version that it began with: what comes live must not change what somebody types. */
function BegunForm({ schedule, kinds, fix }: { schedule: Schedule; kinds: Kind[]; fix: boolean }) {
  const [begun, setBegun] = useState(schedule);
  const [initial, setInitial] = useState(() => begin(schedule, kinds, fix));
  return (
    <ScheduleForm
      key={begun.version}
      schedule={begun}
      initial={initial}
      kinds={kinds}
      fix={fix}
      onReload={(theirs) => {
        setBegun(theirs);
        setInitial(begin(theirs, kinds, fix));
      }}
    />
  );
}

/** A broken schedule is off; its form shows it on, as it will be. */
function begin(schedule: Schedule, kinds: Kind[], fix: boolean): FormValues {
  const values = valuesOf(schedule, kinds);
  return fix ? { ...values, enabled: true } : values;
}
