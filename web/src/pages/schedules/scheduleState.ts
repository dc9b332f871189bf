// The state of a schedule in one word, as the command line says it.

import type { Schedule } from "@/api/types";
import { plainText } from "@/components/output/ansi";
import type { IconName } from "@/components/Icon";
import type { Tone } from "@/components/stateLook";

export type ScheduleState = Schedule["state"];

const LOOKS: Record<ScheduleState, { tone: Tone; icon: IconName }> = {
  on: { tone: "good", icon: "check" },
  off: { tone: "quiet", icon: "minus" },
  paused: { tone: "warn", icon: "pause" },
  broken: { tone: "bad", icon: "alert" },
  orphaned: { tone: "warn", icon: "unplug" },
  finished: { tone: "quiet", icon: "check" },
};

export function stateLook(state: ScheduleState): { tone: Tone; icon: IconName } {
  return LOOKS[state];
}

/** Why it is broken. A reason may hold the last line of an output, with its colours. */
export function brokenText(schedule: Schedule): string {
  return plainText(schedule.broken ?? "");
}

/** The reason without its first word: `disabled: moving house` is `moving house`. */
export function reasonText(reason: string | null): string {
  return plainText((reason ?? "").replace(/^\w+: /, ""));
}
