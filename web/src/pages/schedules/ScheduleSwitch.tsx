import type { Schedule } from "@/api/types";
import { Switch } from "@/components/Switch";
import type { Turn } from "./useTurning";

interface Props {
  schedule: Schedule;
  /** Why whoever is logged in may not turn it. */
  why: string | undefined;
  /** It is being switched on. */
  turningOn: boolean;
  onTurn: (turn: Turn) => void;
}

/** On and off. It only asks: off needs a reason, on may be refused, and the page sees to both. */
export function ScheduleSwitch({ schedule, why, turningOn, onTurn }: Props) {
  return (
    <Switch
      checked={turningOn || schedule.enabled}
      onChange={(next) => onTurn({ name: schedule.name, to: next ? "on" : "off" })}
      label={`Switch ${schedule.name} on or off`}
      why={why}
    />
  );
}
