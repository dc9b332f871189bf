/** How often it runs, with one press: off, or so long after the last run has finished. Each press can be taken back. */

import { useMay } from "@/api/queries/me";
import { useChangeSchedule, useDisable, useEnable } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { Card } from "@/components/Card";
import { useProblemToast, useToast } from "@/components/Toast";
import { Preset } from "../form/Preset";
import { PRESETS, isPreset } from "../form/timingText";
import type { Turning } from "../schedules/useTurning";

export function PresetCard({ schedule, turning }: { schedule: Schedule; turning: Turning }) {
  const may = useMay("operator");
  const change = useChangeSchedule(schedule.name);
  const enable = useEnable();
  const disable = useDisable();
  const say = useToast();
  const problem = useProblemToast();
  const { name, enabled, timing: before } = schedule;

  /** First the timing: a schedule that is switched on begins with the one that was chosen. */
  async function set(timing: string, on: boolean): Promise<void> {
    if (timing !== before) await change.mutateAsync({ changes: { timing } });
    if (on && !enabled) await enable.mutateAsync({ ref: name });
  }
  async function takeBack(): Promise<void> {
    await change.mutateAsync({ changes: { timing: before } });
    if (!enabled) await disable.mutateAsync({ ref: name, keepRetries: true });
  }
  const undo = () => void takeBack().catch(problem(`${name} could not be set back`));
  function choose(label: string, timing: string): void {
    set(timing, true).then(
      () => say({ title: `${name} runs ${label} after it has finished`, action: { label: "Undo", run: undo } }),
      problem(`The timing of ${name} could not be changed`),
    );
  }
  const busy = change.isPending || enable.isPending ? "It is being changed." : may.reason;

  return (
    <Card title="How often">
      <div role="group" aria-label="How often" className="-mt-1 flex flex-wrap gap-1.5">
        <Preset
          label="Off"
          pressed={!enabled}
          why={busy}
          onClick={() => turning.turn({ name, to: enabled ? "off" : "on" })}
        />
        {PRESETS.map(({ label, text }) => (
          <Preset
            key={label}
            label={label}
            pressed={enabled && isPreset(before, text)}
            why={busy}
            onClick={() => !(enabled && isPreset(before, text)) && choose(label, text)}
          />
        ))}
      </div>
      <p className="mt-2 text-xs text-muted">So long after the last run has finished; nothing overlaps.</p>
    </Card>
  );
}
