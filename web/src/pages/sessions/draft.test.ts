import { expect, it } from "vitest";
import { draftMessage, NEW_DRAFT, sendCommand } from "./draft";

it("a message to an agent says what is not the default, and takes the text as it is", () => {
  const draft = { ...NEW_DRAFT, to: "agent" as const, text: "12", model: "opus ", project: "blog", task: "left over" };
  expect(draftMessage(draft)).toEqual({ agent: { model: "opus" }, payload: "12", project: "blog" });
});

it("a message to a task is JSON where it is JSON", () => {
  const draft = { ...NEW_DRAFT, task: "reply", text: "12", mode: "followup" as const, model: "left over" };
  expect(draftMessage(draft)).toEqual({ task: "reply", payload: 12, mode: "followup" });
});

it.each([
  [{ session: "dm:42/a" }, 'ostinato session send dm:42/a "hello" --task TASK'],
  [{ session: "it's me" }, `ostinato session send 'it'\\''s me' "hello" --task TASK`],
  [{ session: "-1001", text: "hi", task: "reply" }, 'ostinato session send --task reply -- -1001 "hi"'],
  [{ text: "$HOME is full" }, "ostinato session send KEY '$HOME is full' --task TASK"],
  [
    { session: "dm:42", to: "agent", model: "opus", system: "Be brief", project: "blog", mode: "interrupt", text: "Hi" },
    `ostinato session send dm:42 "Hi" --agent --model opus --system 'Be brief' --project blog --mode interrupt`,
  ],
] as const)("%j is typed as %s", (draft, command) => {
  expect(sendCommand(draft)).toBe(command);
});
