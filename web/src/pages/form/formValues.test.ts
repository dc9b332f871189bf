import { describe, expect, it } from "vitest";
import type { Schedule } from "@/api/types";
import { samplePolicy, sampleSchedule, sampleShell } from "@/testing/samples";
import { firstField, formField, placeErrors } from "./fieldErrors";
import { NEW_VALUES, changeRequest, newRequest, valuesOf } from "./formValues";
import { NO_POLICY, commandOf } from "./policyFields";

const policy = samplePolicy({ timeout: "5m", break_after: 3 });
const schedule = sampleSchedule({
  name: "backup",
  version: 4,
  policy,
  work: sampleShell({ command: "pg_dump site", env: { TOKEN: "env:TOKEN" } }),
});

describe("a new schedule", () => {
  it("sends only what was said", () => {
    const values = {
      ...NEW_VALUES,
      name: " hello ",
      timing: "every 5m",
      work: { ...NEW_VALUES.work, command: "echo hello" },
    };
    expect(newRequest(values)).toEqual({
      body: { name: "hello", timing: "every 5m", work: { kind: "shell", command: "echo hello" } },
      errors: {},
    });
  });

  it("sends numbers, lists and objects of the policy in the server's form", () => {
    const given = {
      ...NO_POLICY,
      "retry.max": "5",
      "retry.base": "1s",
      checks: "disk, net",
      "keep.count": "none",
      "budget.per_day_usd": "2.5",
      timeout: "none",
      remaining: "1",
      delete_after_run: "true",
      on_lost_lease: "continue",
      "gate.command": '["test", "-f", "x"]',
      catch_up: "none",
    };
    const values = {
      ...NEW_VALUES,
      name: "a",
      timing: "every 5m",
      policy: given,
      work: { ...NEW_VALUES.work, command: "x" },
    };
    expect(newRequest(values).body.policy).toEqual({
      catch_up: "none",
      retry: { max: 5, base: "1s" },
      checks: ["disk", "net"],
      keep: { count: null },
      timeout: null,
      remaining: 1,
      delete_after_run: true,
      on_lost_lease: "continue",
      budget: { per_run_usd: null, per_day_usd: 2.5, per_day_runs: null },
      gate: { command: ["test", "-f", "x"], timeout: "30s" },
    });
  });

  it("says what is not JSON without asking the server", () => {
    const values = {
      ...NEW_VALUES,
      work: { ...NEW_VALUES.work, kind: "function" as const, task: "mail", args: "{", kwargs: "[1]" },
    };
    expect(Object.keys(newRequest(values).errors).sort()).toEqual(["name", "timing", "work.args", "work.kwargs"]);
  });

  it("sends the number of a user as text", () => {
    const work = { ...NEW_VALUES.work, command: "true", user: " 1000 ", nice: "5" };
    expect(newRequest({ ...NEW_VALUES, work }).body.work).toEqual({ kind: "shell", command: "true", user: "1000", nice: 5 });
  });

  it("sends what runs a text, and says that a list has no use for it", () => {
    const work = { ...NEW_VALUES.work, command: "print(1)", interpreter: " python3 " };
    const values = { ...NEW_VALUES, name: "a", timing: "every 5m", work };
    expect(newRequest(values).body.work).toEqual({ kind: "shell", command: "print(1)", interpreter: "python3" });
    const { errors } = newRequest({ ...values, work: { ...work, command: '["python3", "job.py"]' } });
    expect(errors).toEqual({ "work.interpreter": expect.stringContaining("runs without a shell") as string });
    const known = valuesOf({ ...schedule, work: sampleShell({ interpreter: "python3" }) });
    expect(changeRequest({ ...known, work: { ...known.work, interpreter: "" } }, known).body.work).toEqual({
      kind: "shell",
      command: "pg_dump",
    });
  });

  it("takes a JSON list as a command without a shell, and shell tests as shell", () => {
    expect(commandOf('["python", "job.py"]')).toEqual(["python", "job.py"]);
    expect(commandOf("[ -f x ] && y")).toBe("[ -f x ] && y");
  });
});

describe("an edit", () => {
  const before = valuesOf(schedule);

  it("shows only what differs from the defaults", () => {
    expect(before.policy).toEqual(NO_POLICY);
    expect(before.work).toMatchObject({ command: "pg_dump site", env: "TOKEN=env:TOKEN" });
    expect(
      valuesOf({ ...schedule, policy: { ...policy, timeout: null, keep: { age: null, count: 5 } } }).policy,
    ).toMatchObject({ timeout: "none", "keep.age": "none", "keep.count": "5" });
  });

  it("sends nothing when nothing was changed, and one field when one was", () => {
    expect(changeRequest(before, before).body).toEqual({});
    expect(changeRequest({ ...before, timing: "daily 04:00" }, before).body).toEqual({ timing: "daily 04:00" });
    expect(changeRequest({ ...before, policy: { ...before.policy, "retry.max": "0" } }, before).body).toEqual({
      policy: { retry: { max: 0 } },
    });
  });

  it("sends environment and headers as they were, whatever is in them, when only something else was changed", () => {
    const env = { KEY: "line one\nNAME=two", PAD: " x ", QUOTED: '"q"', WINDOWS: "a\r\nb", PLAIN: "a=b", EMPTY: "" };
    const shell = valuesOf({ ...schedule, work: sampleShell({ env }) });
    const changed = { ...shell, work: { ...shell.work, command: "true" } };
    expect(changeRequest(changed, shell).body.work).toEqual({ kind: "shell", command: "true", env });
    const headers = { "X-Note": " padded", Accept: "text/plain" };
    const http = { kind: "http", method: "GET", url: "http://a", headers, body: null, json: null, expect: ["2xx"] };
    const call = valuesOf({ ...schedule, work: http as Schedule["work"] });
    const moved = { ...call, work: { ...call.work, url: "http://b" } };
    expect(changeRequest(moved, call).body.work).toEqual({ kind: "http", method: "GET", url: "http://b", headers });
  });

  it("sends a check-in with how long it may take, if that is said", () => {
    const work = { kind: "check_in", late_after: "30m" } as Schedule["work"];
    const known = valuesOf({ ...schedule, work });
    const changed = { ...known, work: { ...known.work, late_after: "" } };
    expect(changeRequest(changed, known).body.work).toEqual({ kind: "check_in" });
    const later = { ...known, work: { ...known.work, late_after: " 1h " } };
    expect(changeRequest(later, known).body.work).toEqual({ kind: "check_in", late_after: "1h" });
  });

  it("takes quotes that are no JSON for what they are", () => {
    const values = { ...before, work: { ...before.work, env: 'A="two\\nlines"\nB="a" and "b"\nC=say "hi"' } };
    expect(changeRequest(values, before).body.work).toMatchObject({
      env: { A: "two\nlines", B: '"a" and "b"', C: 'say "hi"' },
    });
  });

  it("sends the default for a field that was emptied", () => {
    const held = valuesOf({
      ...schedule,
      policy: {
        ...policy,
        lane: "main",
        timeout: "1h",
        budget: { per_run_usd: 1, per_day_usd: null, per_day_runs: null },
      },
    });
    expect(changeRequest({ ...held, policy: { ...NO_POLICY } }, held).body).toEqual({
      policy: { lane: "cron", timeout: "5m", budget: null },
    });
  });

  it("gives work of another kind that kind's timeout", () => {
    const values = { ...before, work: { ...before.work, kind: "agent" as const, prompt: "look", env: "" } };
    expect(changeRequest(values, before).body).toEqual({
      work: { kind: "agent", prompt: "look", context: "isolated" },
      policy: { timeout: "30m" },
    });
  });
});

describe("the server's field errors", () => {
  const known = [
    "name",
    "timing",
    "work.command",
    "work.env",
    "work.body",
    "policy.retry.max",
    "policy.retry.base",
    "policy.timeout",
  ];

  it("stand at the fields that they mean", () => {
    expect(formField("work.command", known)).toBe("work.command");
    expect(formField("command", known)).toBe("work.command");
    expect(formField("policy.retry", known)).toBe("policy.retry.max");
    expect(formField("timeout", known)).toBe("policy.timeout");
    expect(formField("work.env.TOKEN", known)).toBe("work.env");
    expect(formField("work.json", known)).toBe("work.body");
    expect(formField("elsewhere", known)).toBeNull();
  });

  it("give the focus to the first in the order of the form", () => {
    const placed = placeErrors(
      [
        { field: "policy.timeout", message: "no" },
        { field: "name", message: "taken" },
        { field: null, message: "other" },
      ],
      known,
    );
    expect(firstField(placed.fields, known)).toBe("name");
    expect(placed.others).toHaveLength(1);
  });
});
