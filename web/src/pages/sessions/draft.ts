// A message as the dialog holds it, in texts: to what is sent, and to what would be typed instead.

import type { NewMessage } from "@/api/types";
import { shellWord } from "@/components/shellWord";
import { type ModeChoice, readPayload } from "@/pages/sessions/recipient";

export interface Draft {
  session: string;
  to: "task" | "agent";
  task: string;
  model: string;
  cli: string;
  project: string;
  system: string;
  text: string;
  mode: ModeChoice;
}

export const NEW_DRAFT: Draft = {
  session: "",
  to: "task",
  task: "",
  model: "",
  cli: "",
  project: "",
  system: "",
  text: "",
  mode: "",
};

/** Only what is said: the rest is left to the defaults. */
const said = (fields: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields)
      .map(([name, value]) => [name, value.trim()] as const)
      .filter(([, value]) => value !== ""),
  );

export function draftMessage(draft: Draft): NewMessage {
  const { to, task, model, cli, project, system, text, mode } = draft;
  return {
    ...(to === "task"
      ? { task: task.trim(), payload: readPayload(text) }
      : { agent: said({ model, cli, system }), payload: text, ...said({ project }) }),
    ...(mode !== "" && { mode }),
  };
}

/** What to type to send it. What is not said yet stands there as a word in capitals. */
export function sendCommand(draft: Partial<Draft> = {}): string {
  const { session, to, task, model, cli, project, system, text, mode } = { ...NEW_DRAFT, ...draft };
  const flags: Record<string, string> = to === "task" ? { mode } : { model, cli, system, project, mode };
  const payload = text.trim() === "" ? '"hello"' : shellWord(text) === text ? `"${text}"` : shellWord(text);
  const words = [session.trim() === "" ? "KEY" : shellWord(session.trim()), payload];
  const given = [
    to === "agent" ? "--agent" : `--task ${task.trim() === "" ? "TASK" : shellWord(task.trim())}`,
    ...Object.entries(said(flags)).map(([name, value]) => `--${name} ${shellWord(value)}`),
  ];
  // What begins like a flag stands behind `--`.
  const ordered = [session, text].some((word) => word.trim().startsWith("-")) ? [...given, "--", ...words] : [...words, ...given];
  return ["ostinato session send", ...ordered].join(" ");
}
