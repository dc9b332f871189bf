import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "@/api/queries/me";
import { useRemoveSchedule } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { Button, buttonClass } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { Icon } from "@/components/Icon";
import { IconButton } from "@/components/IconButton";
import { Menu } from "@/components/Menu";
import { useToast } from "@/components/Toast";
import { DisableDialog } from "../schedules/DisableDialog";
import { BackfillDialog } from "./BackfillDialog";
import { RunNow } from "./RunNow";
import { WhyDialog } from "./WhyDialog";

type Open = "off" | "backfill" | "why" | "remove" | null;

/** Everything that can be done with a schedule: what is done often as buttons, the rest in a menu. */
export function ScheduleActions({ schedule, onRuns }: { schedule: Schedule; onRuns: () => void }) {
  const may = useMay("operator");
  const [open, setOpen] = useState<Open>(null);
  const remove = useRemoveSchedule();
  const navigate = useNavigate();
  const say = useToast();
  const close = () => setOpen(null);
  const { name } = schedule;

  return (
    <>
      <RunNow schedule={schedule} />
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
          ...(schedule.enabled && schedule.broken === null
            ? [
                {
                  label: "Switch off with a reason",
                  icon: "pause" as const,
                  onSelect: () => setOpen("off"),
                  why: may.reason,
                },
              ]
            : []),
          { label: "Backfill", icon: "history", onSelect: () => setOpen("backfill"), why: may.reason },
          { label: "Why didn’t it run?", icon: "info", onSelect: () => setOpen("why") },
          {
            label: "Copy to a new schedule",
            icon: "copy",
            onSelect: () => void navigate({ to: "/schedules/new", search: { from: name } }),
            why: may.reason,
          },
          "line",
          { label: "Remove", icon: "trash", danger: true, onSelect: () => setOpen("remove"), why: may.reason },
        ]}
      />
      {open === "off" && <DisableDialog name={name} open onOpenChange={close} />}
      {open === "backfill" && <BackfillDialog schedule={schedule} onClose={close} />}
      {open === "why" && <WhyDialog schedule={schedule} onClose={close} />}
      <ConfirmDialog
        open={open === "remove"}
        onOpenChange={close}
        title={`Remove ${name}?`}
        text="This cannot be taken back. Its runs and their output are removed with it."
        action="Remove"
        danger
        onConfirm={async () => {
          await remove.mutateAsync(name);
          say({ title: `${name} is removed` });
          void navigate({ to: "/schedules" });
        }}
      />
    </>
  );
}
