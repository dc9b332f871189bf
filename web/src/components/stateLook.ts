/** How each state of a run looks: a word, a shape and a colour, so that none has to carry it alone. */

import type { Cause, RunState } from "@/api/types";
import type { IconName } from "@/components/Icon";

export type Tone = "good" | "bad" | "warn" | "info" | "wait" | "quiet";

/** A state as it is shown: what succeeded with errors has a look of its own. */
export type ShownState = RunState | "errors";

export interface StateLook {
  label: string;
  icon: IconName;
  tone: Tone;
  /** For shapes in charts. */
  color: string;
  /** What it means, for a tooltip. */
  meaning: string;
}

const LOOKS: Record<ShownState, StateLook> = {
  queued: {
    label: "queued",
    icon: "hourglass",
    tone: "wait",
    color: "var(--state-queued)",
    meaning: "Waiting for its time, its turn or room in its lane.",
  },
  running: { label: "running", icon: "play", tone: "info", color: "var(--state-running)", meaning: "A node is running it." },
  succeeded: {
    label: "succeeded",
    icon: "check",
    tone: "good",
    color: "var(--state-succeeded)",
    meaning: "The work ended without an error.",
  },
  errors: {
    label: "succeeded with errors",
    icon: "checkAlert",
    tone: "warn",
    color: "var(--state-errors)",
    meaning: "It succeeded, and counted errors.",
  },
  failed: {
    label: "failed",
    icon: "cross",
    tone: "bad",
    color: "var(--state-failed)",
    meaning: "The last attempt that its retry policy allows ended in an error.",
  },
  cancelled: {
    label: "cancelled",
    icon: "ban",
    tone: "quiet",
    color: "var(--state-cancelled)",
    meaning: "A person, a policy or a newer run stopped it.",
  },
  skipped: {
    label: "skipped",
    icon: "skip",
    tone: "quiet",
    color: "var(--state-skipped)",
    meaning: "Not executed: overlap, a check, a gate or a budget said no.",
  },
  missed: {
    label: "missed",
    icon: "clock",
    tone: "warn",
    color: "var(--state-missed)",
    meaning: "Due while no engine was running, and not caught up.",
  },
  expired: {
    label: "expired",
    icon: "alert",
    tone: "warn",
    color: "var(--state-expired)",
    meaning: "It waited longer than its max age.",
  },
  superseded: {
    label: "superseded",
    icon: "swap",
    tone: "quiet",
    color: "var(--state-superseded)",
    meaning: "Interrupted by a newer message of its session.",
  },
};

const SHOWN = Object.keys(LOOKS) as ShownState[];

export const STATES = SHOWN.filter((state): state is RunState => state !== "errors");

/** How a run is shown that is in this state for this cause. */
export function shownState(run: { state: RunState; cause?: Cause | null }): ShownState {
  return run.state === "succeeded" && run.cause === "errors" ? "errors" : run.state;
}

/** How many runs are shown how, of so many by state of which some succeeded with errors. */
export function shownCounts(counts: {
  states: Partial<Record<RunState, number>>;
  with_errors: number;
}): Partial<Record<ShownState, number>> {
  const { states, with_errors: errors } = counts;
  if (errors === 0) return states;
  const { succeeded = 0, ...others } = states;
  return { ...(succeeded > errors ? { succeeded: succeeded - errors } : {}), errors, ...others };
}

/** Also for states that a newer server may have. */
export function look(state: string): StateLook {
  const known = SHOWN.find((each) => each === state);
  return known === undefined
    ? { label: state, icon: "circle", tone: "quiet", color: "var(--state-skipped)", meaning: "" }
    : LOOKS[known];
}

/** Whether nothing will change any more. */
export const hasEnded = (state: RunState): boolean => state !== "queued" && state !== "running";
