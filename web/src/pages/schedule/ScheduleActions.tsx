import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "@/api/queries/me";
import { useRemoveSchedule } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { Button, buttonClass } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { Icon } from "@/components/Icon";
import { IconButton } from "@/components/IconButton";
import { Menu, type MenuAction } from "@/components/Menu";
import { useToast } from "@/components/Toast";
import type { Turning } from "../schedules/useTurning";
import { BackfillDialog } from "./BackfillDialog";
import { RunNow } from "./RunNow";
import { WhyDialog } from "./WhyDialog";

type Open = "backfill" | "why" | "remove" | null;

interface Props {
  schedule: Schedule;
  turning: Turning;
  onRuns: () => void;
}

/** Everything that can be done with a schedule: what is done often as buttons, the rest in a menu, as is what a narrow
 *  screen has no room for. */
export function ScheduleActions({ schedule, turning, onRuns }: Props) {
  const may = useMay("operator");
  const [open, setOpen] = useState<Open>(null);
  const remove = useRemoveSchedule();
  const navigate = useNavigate();
  const say = useToast();
  const close = () => setOpen(null);
  const { name } = schedule;
  const declared = schedule.owner === "code" && schedule.origin !== null && !schedule.orphaned;
  // What follows others has no due times of its own that could be made up for.
  const roomy: MenuAction[] = schedule.follows
    ? []
    : [{ label: "Backfill…", icon: "history", onSelect: () => setOpen("backfill"), why: may.reason }];
  if (schedule.enabled) {
    const pause = () => turning.turn({ name, to: "off" });
    roomy.unshift({ label: "Pause…", icon: "pause", onSelect: pause, why: may.reason });
  }

  return (
    <>
      <RunNow schedule={schedule} />
      {roomy.map(({ label, icon, onSelect, why }) => (
        <Button key={label} icon={icon} why={why} onClick={onSelect} className="max-md:hidden">
          {label}
        </Button>
      ))}
      <Button icon="list" onClick={onRuns}>
        Runs
      </Button>
      {may.allowed && (
        <Link to="/schedules/$name/edit" params={{ name }} className={buttonClass()}>
          <Icon name="edit" size={14} />
          Edit
        </Link>
      )}
      <Menu
        trigger={<IconButton icon="dots" label="More actions" />}
        items={[
          ...roomy.map((action) => ({ ...action, className: "md:hidden" })),
          { label: "Why didn’t it run?", icon: "info", onSelect: () => setOpen("why") },
          {
            label: "Copy to a new schedule",
            icon: "copy",
            onSelect: () => void navigate({ to: "/schedules/new", search: { from: name } }),
            why: may.reason,
          },
          "line",
          { label: "Remove…", icon: "trash", danger: true, onSelect: () => setOpen("remove"), why: may.reason },
        ]}
      />
      {open === "backfill" && <BackfillDialog schedule={schedule} onClose={close} />}
      {open === "why" && <WhyDialog schedule={schedule} onClose={close} />}
      <ConfirmDialog
        open={open === "remove"}
        onOpenChange={close}
        title={`Remove schedule ${name}?`}
        text={
          declared
            ? `The code of app ${schedule.origin} declares this schedule: it comes back, without its runs, when that app starts the next time. Pause it instead, or remove it from the code.`
            : "The schedule, its runs and their output will be removed. This cannot be undone."
        }
        action={declared ? "Remove it until then" : "Remove schedule"}
        danger
        onConfirm={async () => {
          await remove.mutateAsync({ ref: name, force: declared });
          say({ title: `${name} was removed` });
          void navigate({ to: "/schedules" });
        }}
      />
    </>
  );
}
