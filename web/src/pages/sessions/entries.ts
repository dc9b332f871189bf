// The runs of a session as a conversation: what was sent, who sent it, and what became of it.

import type { Run } from "@/api/types";
import type { IconName } from "@/components/Icon";
import { plainText } from "@/components/output/ansi";
import { look, type Tone } from "@/components/stateLook";
import { causeText } from "@/pages/runs/causes";

/** A run of the thread. */
export interface Entry {
  run: Run;
  /** How many messages it carries. */
  messages: number;
}

/** The payloads of a message's run; other runs have none. */
export function payloadsOf(run: Pick<Run, "work">): unknown[] {
  if (run.work.kind !== "function") return [];
  const payloads = run.work.kwargs["payloads"];
  return Array.isArray(payloads) ? payloads : [];
}

/** The run that carries the payload of this one; null for one that goes for itself. */
function carrierOf(run: Run): number | null {
  if (run.cause !== "debounced" || run.result === null || typeof run.result !== "object") return null;
  const carrier = (run.result as Record<string, unknown>)["run"];
  return typeof carrier === "number" ? carrier : null;
}

/** Oldest first. What joined a burst is told by the run that carries it. */
export function threadOf(newestFirst: readonly Run[]): Entry[] {
  const joined = new Map<number, number>();
  for (const run of newestFirst) {
    const carrier = carrierOf(run);
    if (carrier !== null) joined.set(carrier, (joined.get(carrier) ?? 0) + 1);
  }
  return newestFirst
    .filter((run) => run.cause !== "debounced")
    .map((run) => ({ run, messages: payloadsOf(run).length || 1 + (joined.get(run.id) ?? 0) }))
    .reverse();
}

/** Text as it is, everything else as JSON. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** What was sent, as texts: the prompt of an agent, the payloads of a task. Other work has none. */
export function sentTexts(run: Pick<Run, "work">): string[] {
  return run.work.kind === "agent" ? [run.work.prompt] : payloadsOf(run).map(textOf);
}

/** The answer as a text; null if there is none. That of an agent is what it said last. */
export function answerText(run: Pick<Run, "work" | "result">): string | null {
  const { result } = run;
  if (result === null || result === undefined) return null;
  const said = run.work.kind === "agent" && typeof result === "object" ? (result as Record<string, unknown>)["text"] : null;
  return typeof said === "string" ? said : textOf(result);
}

/** Whether an answer is told in JSON, and not in words. */
export function isJsonAnswer(run: Pick<Run, "work" | "result">): boolean {
  return typeof run.result !== "string" && answerText(run) === textOf(run.result);
}

export interface Outcome {
  label: string;
  icon: IconName;
  tone: Tone;
  /** Why, as a sentence; empty if the ledger says nothing. */
  reason: string;
}

/** A word that says more here than the state does. */
const WORDS: Partial<Record<NonNullable<Run["cause"]>, string>> = { session_stopped: "stopped", budget: "over budget" };
const TOLD_BY_CAUSE = new Set<Run["state"]>(["skipped", "superseded", "cancelled"]);

/** How a run ended, for whoever reads the conversation. */
export function outcomeOf(run: Pick<Run, "state" | "cause" | "reason">): Outcome {
  const { label, icon, tone } = look(run.state);
  const cause = TOLD_BY_CAUSE.has(run.state) ? run.cause : null;
  return {
    label: cause === null ? label : (WORDS[cause] ?? causeText(cause)),
    icon,
    tone,
    reason: sentence(run.reason),
  };
}

/** The server's words as a sentence. */
export function sentence(words: string | null): string {
  const said = plainText(words ?? "");
  return said.charAt(0).toUpperCase() + said.slice(1);
}
