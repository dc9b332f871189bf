// What a run went through: waiting, each attempt, and how it ended; and how long it may still take.

import type { Progress, Run } from "@/api/types";
import { look, shownState } from "@/components/stateLook";

export interface Phase {
  kind: "waiting" | "running" | "end";
  label: string;
  /** The state that colours it. */
  state: string;
  start: number;
  /** null while it goes on. */
  end: number | null;
}

const time = (text: string): number => Date.parse(text);

/** The phases in order; the last is the end, or is still open. */
export function phasesOf(run: Run): Phase[] {
  const phases: Phase[] = [];
  const attempts = run.attempts;
  const finished = run.finished_at === null ? null : time(run.finished_at);
  let since = time(run.due_at);
  attempts.forEach((attempt, index) => {
    const start = time(attempt.started_at);
    phases.push(waiting(index === 0 ? "queued" : "waiting to retry", since, Math.max(since, start)));
    const open = attempt.finished_at === null;
    const label = attempts.length > 1 ? `attempt ${index + 1}` : "running";
    const state = open ? (finished === null ? "running" : run.state) : stateOfAttempt(attempt.state);
    phases.push({
      kind: "running",
      label,
      state,
      start,
      end: open ? finished : time(attempt.finished_at ?? attempt.started_at),
    });
    since = phases.at(-1)?.end ?? start;
  });
  if (run.state === "running" && attempts.length === 0 && run.started_at !== null) {
    phases.push(waiting("queued", since, time(run.started_at)));
    phases.push({ kind: "running", label: "running", state: "running", start: time(run.started_at), end: null });
  }
  if (run.state === "queued") phases.push(waiting(attempts.length === 0 ? "queued" : "waiting to retry", since, null));
  if (finished !== null) {
    if (attempts.length === 0) phases.push(waiting("queued", Math.min(since, finished), finished));
    const state = shownState(run);
    phases.push({ kind: "end", label: look(state).label, state, start: finished, end: finished });
  }
  return phases;
}

/** The steps that have not come yet. */
export function stepsAhead({ state, attempts }: Run): string[] {
  if (state === "running") return ["done"];
  if (state !== "queued") return [];
  return [attempts.length === 0 ? "running" : `attempt ${attempts.length + 1}`, "done"];
}

function waiting(label: string, start: number, end: number | null): Phase {
  return { kind: "waiting", label, state: "queued", start, end };
}

/** Attempts have words of their own for some ends; the chart has the colours of runs. */
function stateOfAttempt(state: string): string {
  const known = ["running", "succeeded", "failed", "cancelled", "skipped", "expired", "superseded"];
  return known.includes(state) ? state : "failed";
}

export function phaseSeconds(phase: Phase, now: number): number {
  return Math.max(0, ((phase.end ?? now) - phase.start) / 1000);
}

/** Seconds that are left if it goes on as it has gone so far; null while nobody can say. */
export function secondsLeft(progress: Progress | null, startedAt: string | null, now: number): number | null {
  if (progress === null || startedAt === null || !progress.done || !progress.total) return null;
  const elapsed = (now - time(startedAt)) / 1000;
  if (elapsed < 1 || progress.done >= progress.total) return null;
  return (elapsed / progress.done) * (progress.total - progress.done);
}

/** Rounded as an estimate is said: `about 3 minutes left`. */
export function leftText(seconds: number): string {
  if (seconds < 5) return "a few seconds left";
  if (seconds < 55) return `about ${Math.ceil(seconds / 5) * 5} seconds left`;
  const said = (amount: number, unit: string) => `about ${amount} ${unit}${amount === 1 ? "" : "s"} left`;
  if (seconds < 55 * 60) return said(Math.max(1, Math.round(seconds / 60)), "minute");
  if (seconds < 36 * 3600) return said(Math.max(1, Math.round(seconds / 3600)), "hour");
  return said(Math.round(seconds / 86_400), "day");
}
