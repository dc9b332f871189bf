import { describe, expect, it } from "vitest";
import { sampleAgent, sampleRun } from "@/testing/samples";
import { answerText, isJsonAnswer, outcomeOf, sentTexts, threadOf } from "./entries";

const agentRun = (id: number, prompt: string, changes: Parameters<typeof sampleRun>[0] = {}) =>
  sampleRun({ id, schedule: null, trigger: "message", work: sampleAgent({ prompt }), ...changes });

describe("the thread", () => {
  it("is oldest first, and tells a message that joined a burst with the run that carries it", () => {
    const runs = [
      agentRun(3, "bye"),
      agentRun(2, "there?", { state: "skipped", cause: "debounced", result: { run: 1 } }),
      agentRun(1, "hello\n\nthere?"),
    ];
    expect(threadOf(runs).map(({ run, messages }) => [run.id, messages])).toEqual([
      [1, 2],
      [3, 1],
    ]);
  });

  it("counts the payloads of a task, whose list holds the joined ones already", () => {
    const work = { kind: "function" as const, task: "reply", args: [], kwargs: { payloads: ["a", { b: 1 }] } };
    const joined = sampleRun({ id: 8, state: "skipped", cause: "debounced", result: { run: 7 }, work });
    const [entry, ...others] = threadOf([joined, sampleRun({ id: 7, work })]);
    expect(others).toEqual([]);
    expect(entry?.messages).toBe(2);
    expect(sentTexts({ work })).toEqual(["a", '{\n  "b": 1\n}']);
  });
});

describe("an answer", () => {
  const task = sampleRun().work;
  it.each([
    [sampleAgent(), { text: "Done.", session_id: "x" }, "Done.", false],
    [sampleAgent(), { broken: true }, '{\n  "broken": true\n}', true],
    [task, "as it is", "as it is", false],
    [task, { text: "a field of its own" }, '{\n  "text": "a field of its own"\n}', true],
    [task, null, null, false],
  ])("of %j with %j is %j", (work, result, text, isJson) => {
    expect(answerText({ work, result })).toBe(text);
    if (text !== null) expect(isJsonAnswer({ work, result })).toBe(isJson);
  });
});

it.each([
  ["superseded", "interrupted", "interrupted by a newer message of its session", "interrupted"],
  ["cancelled", "session_stopped", "its session was stopped", "stopped"],
  ["cancelled", "cancelled", "cancelled by ada", "cancelled"],
  ["skipped", "dropped", "dropped: its session's queue was full and a newer message came", "dropped"],
  ["skipped", "stale", "stale: it was sent before its session was stopped", "stale"],
  ["skipped", "budget", "the budget of the day is used up", "over budget"],
  ["failed", "agent_error", "API Error: 500", "failed"],
  ["expired", "expired", "it waited longer than 1h", "expired"],
] as const)("a run that is %s by %s is told as such", (state, cause, reason, label) => {
  const told = outcomeOf({ state, cause, reason });
  expect(told.label).toBe(label);
  expect(told.reason.toLowerCase()).toBe(reason.toLowerCase());
  expect(told.reason.charAt(0)).toBe(reason.charAt(0).toUpperCase());
});
