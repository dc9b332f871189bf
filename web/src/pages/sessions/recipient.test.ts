import { describe, expect, it } from "vitest";
import { sampleAgent, sampleRun } from "@/testing/samples";
import { lastTalk, messageTo, readPayload, recipientName, recipientOf } from "./recipient";

const reply = (payloads: unknown[]) => ({ kind: "function" as const, task: "reply", args: [], kwargs: { payloads } });

describe("whoever got the last message gets the next", () => {
  it("the same agent in the same project, without its prompt and what it has by default", () => {
    const work = sampleAgent({ context: "session:dm:42", model: "opus", allowed_tools: ["Read"], env: { A: "1" } });
    const to = recipientOf({ work, project: "blog" }, "dm:42");
    expect(to).toEqual({
      project: "blog",
      agent: { cli: "claude", model: "opus", allowed_tools: ["Read"], env: { A: "1" } },
    });
    if (to === null) throw new Error("nobody");
    expect(recipientName(to)).toBe("agent claude, opus, in project blog");
    expect(messageTo(to, "12", "interrupt")).toEqual({
      agent: to.agent,
      payload: "12",
      project: "blog",
      mode: "interrupt",
    });
  });

  it("an agent that begins anew each time stays so, and one of another conversation takes no messages", () => {
    const of = (context: string) => recipientOf({ work: sampleAgent({ context }), project: null }, "dm:42");
    expect(of("isolated")).toEqual({ project: null, agent: { cli: "claude", context: "isolated" } });
    expect(of("group")).toBeNull();
    expect(of("session:dm:7")).toBeNull();
  });

  it("a task gets text where it got text, and JSON where it got JSON", () => {
    const texts = recipientOf({ work: reply(["hello"]), project: null }, "dm:42");
    const values = recipientOf({ work: reply([{ id: 1 }]), project: null }, "dm:42");
    if (texts === null || values === null) throw new Error("nobody");
    expect(messageTo(texts, "12", "")).toEqual({ task: "reply", payload: "12" });
    expect(messageTo(values, '{"id": 2}', "")).toEqual({ task: "reply", payload: { id: 2 } });
  });

  it("a message counts before a newer run of a schedule; without one, the newest that could have been one", () => {
    const scheduled = sampleRun({ id: 3, work: sampleAgent() });
    const sent = sampleRun({ id: 2, trigger: "message", schedule: null, work: reply(["hello"]) });
    const other = sampleRun({ id: 4, work: { kind: "function", task: "export", args: [], kwargs: {} } });
    expect(lastTalk([other, scheduled, sent], "dm:42")?.id).toBe(2);
    expect(lastTalk([other, scheduled], "dm:42")?.id).toBe(3);
    expect(lastTalk([other], "dm:42")).toBeUndefined();
  });
});

it.each([
  ["hello", "hello"],
  ["12", 12],
  ['["a"]', ["a"]],
  ["{broken", "{broken"],
])("%s is the payload %j", (text, payload) => {
  expect(readPayload(text)).toEqual(payload);
});
