// Who gets what is typed into a session: whoever got its last message.

import type { AgentWork, NewMessage, Run } from "@/api/types";
import { payloadsOf } from "@/pages/sessions/entries";

export type ModeChoice = "" | "queue" | "followup" | "interrupt";

export const MODES: readonly { value: ModeChoice; label: string; short: string }[] = [
  { value: "", label: "As the settings say", short: "Default mode" },
  { value: "queue", label: "Queue: wait for its turn", short: "Wait" },
  { value: "followup", label: "Follow up: wait until nothing is under way, and run alone", short: "Follow up" },
  { value: "interrupt", label: "Interrupt: stop what is under way, and go next", short: "Interrupt" },
];

export const modeOf = (text: string): ModeChoice => MODES.find((mode) => mode.value === text)?.value ?? "";

/** What only an admin may do. */
export const SEND_TO_AGENT = "send a message to an agent";

type NewAgent = NonNullable<NewMessage["agent"]>;

export type Recipient = { project: string | null } & (
  | { agent: NewAgent; task?: undefined }
  | { task: string; agent?: undefined; areTexts: boolean }
);

/** JSON where it is JSON, else text: as on the command line. */
export function readPayload(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** The newest run that says whom to write to: that of a message, or else one that could have been. */
export function lastTalk(newestFirst: readonly Run[], session: string): Run | undefined {
  return (
    newestFirst.find((run) => run.trigger === "message") ??
    newestFirst.find((run) => recipientOf(run, session) !== null)
  );
}

/** Who got this run; null if it is nobody who takes messages. */
export function recipientOf(run: Pick<Run, "work" | "project">, session: string): Recipient | null {
  const { work, project } = run;
  if (work.kind === "agent") {
    const takes = work.context === "isolated" || work.context === `session:${session}`;
    return takes ? { project, agent: agentOf(work, session) } : null;
  }
  const payloads = payloadsOf(run);
  if (work.kind !== "function" || payloads.length === 0) return null;
  return { project, task: work.task, areTexts: payloads.every((payload) => typeof payload === "string") };
}

/** The agent without its prompt; what it has by default is not said. */
function agentOf(work: AgentWork, session: string): NewAgent {
  const { kind: _kind, prompt: _prompt, context, allowed_tools, env, ...texts } = work;
  return {
    ...Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== null)),
    ...(context !== `session:${session}` && { context }),
    ...(allowed_tools.length > 0 && { allowed_tools }),
    ...(Object.keys(env).length > 0 && { env }),
  };
}

/** "agent claude, opus, in project blog". */
export function recipientName(to: Recipient): string {
  if (to.task !== undefined) return `task ${to.task}`;
  const { cli = "claude", model } = to.agent;
  return [`agent ${cli}`, model, to.project === null ? null : `in project ${to.project}`].filter(Boolean).join(", ");
}

export function messageTo(to: Recipient, text: string, mode: ModeChoice): NewMessage {
  return {
    ...(to.task === undefined ? { agent: to.agent } : { task: to.task }),
    payload: to.task === undefined || to.areTexts ? text : readPayload(text),
    ...(to.project !== null && { project: to.project }),
    ...(mode !== "" && { mode }),
  };
}
