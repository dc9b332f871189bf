/** How often it runs, with one press: off, or so long after the last run has finished. Each press can be taken back. */

import { useMay } from "@/api/queries/me";
import { useChangeSchedule, useDisable, useEnable } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { Card } from "@/components/Card";
import { useProblemToast, useToast } from "@/components/Toast";
import { Preset } from "../form/Preset";
import { PRESETS, isPreset } from "../form/timingText";
import type { Turning } from "../schedules/useTurning";

/** What broke it would be forgotten, and no press could bring it back. */
const BROKEN = "It is broken: fix it and re-enable it first.";

export function PresetCard({ schedule, turning }: { schedule: Schedule; turning: Turning }) {
  const may = useMay("operator");
  const change = useChangeSchedule(schedule.name);
  const enable = useEnable();
  const disable = useDisable();
  const say = useToast();
  const problem = useProblemToast();
  const { name, enabled, timing: before, off_note: note } = schedule;
  const isBroken = !enabled && schedule.broken !== null;

  /** In one request: what is refused to be switched on keeps its timing. */
  const set = (timing: string) => change.mutateAsync({ changes: { timing, ...(!enabled && { enabled: true }) } });
  /** As it was: off first, so that nothing is due by a timing that nobody chose for it. */
  async function takeBack(timing: string): Promise<void> {
    if (!enabled) await disable.mutateAsync({ ref: name, note: note ?? undefined, keepRetries: true });
    if (timing !== before) await change.mutateAsync({ changes: { timing: before } });
  }
  const undone = (undo: () => Promise<unknown>) => ({
    label: "Undo",
    run: () => void undo().catch(problem(`${name} could not be set back`)),
  });
  function choose(label: string, timing: string): void {
    set(timing).then(
      () => say({ title: `${name} runs ${label} after it has finished`, action: undone(() => takeBack(timing)) }),
      problem(`${name} could not be changed`),
    );
  }
  /** What waits for another attempt goes on: a press that is taken back must not have cancelled it. */
  function turnOff(): void {
    if (isBroken) turning.turn({ name, to: "off" });
    if (!enabled) return;
    disable.mutateAsync({ ref: name, keepRetries: true }).then(
      () => say({ title: `${name} is off`, action: undone(() => enable.mutateAsync({ ref: name })) }),
      problem(`${name} could not be switched off`),
    );
  }
  const isBusy = change.isPending || enable.isPending || disable.isPending;
  const busy = isBusy ? "It is being changed." : may.reason;

  return (
    <Card title="How often">
      <div role="group" aria-label="How often" className="-mt-1 flex flex-wrap gap-1.5">
        <Preset label="Off" pressed={!enabled && !isBroken} why={busy} onClick={turnOff} />
        {PRESETS.map(({ label, text }) => (
          <Preset
            key={label}
            label={label}
            pressed={enabled && isPreset(before, text)}
            why={busy ?? (isBroken ? BROKEN : undefined)}
            onClick={() => !(enabled && isPreset(before, text)) && choose(label, text)}
          />
        ))}
      </div>
      <p className="mt-2 text-xs text-muted">
        {isBroken ? BROKEN : "So long after the last run has finished; nothing overlaps."}
      </p>
    </Card>
  );
}
