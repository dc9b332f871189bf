/** Schedules that the breaker switched off, with the reason and a way back; and those whose task nobody knows, which
 *  are still on. */

import { Link } from "@tanstack/react-router";
import { useMay } from "@/api/queries/me";
import { useEnable } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Icon } from "@/components/Icon";
import { useProblemToast, useToast } from "@/components/Toast";
import { shownOf } from "@/time/format";

interface BrokenCardProps {
  schedules: Schedule[];
  total: number;
}

export function BrokenCard({ schedules, total }: BrokenCardProps) {
  return (
    <Card title="Broken" aside={shownOf(schedules.length, total)} flush>
      <ul className="divide-y divide-line">
        {schedules.map((schedule) => (
          <BrokenRow key={schedule.id} schedule={schedule} />
        ))}
      </ul>
    </Card>
  );
}

function BrokenRow({ schedule }: { schedule: Schedule }) {
  const may = useMay("operator");
  const enable = useEnable();
  const say = useToast();
  const problem = useProblemToast();
  const press = (): void =>
    enable.mutate(
      { ref: schedule.name },
      {
        onSuccess: () => say({ title: `${schedule.name} is on again` }),
        onError: problem(`${schedule.name} could not be enabled`),
      },
    );
  return (
    <li className="flex items-center gap-3 px-4 py-2.5 text-sm">
      <Icon name="alert" className="text-bad" />
      <div className="min-w-0 flex-1">
        <Link to="/schedules/$name" params={{ name: schedule.name }} className="rounded font-medium hover:underline">
          {schedule.name}
        </Link>
        <p className="line-clamp-2 text-xs break-words text-muted">{schedule.broken}</p>
      </div>
      {!schedule.enabled && (
        <Button size="small" why={may.reason} busy={enable.isPending} onClick={press}>
          Enable
        </Button>
      )}
    </li>
  );
}
