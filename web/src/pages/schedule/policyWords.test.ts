import { describe, expect, it } from "vitest";
import { POLICIES } from "@/api/policies";
import { samplePolicy } from "@/testing/samples";
import { policyWords } from "./policyWords";

const policy = samplePolicy({ timeout: "5m", break_after: 3 });

describe("policyWords", () => {
  it("folds what is the default, but for what people ask about", () => {
    const words = policyWords(policy, "shell");
    expect(words.first.map((line) => line.name)).toEqual(["Overlap", "Retry", "Timeout"]);
    expect(words.first.some((line) => line.changed)).toBe(false);
    // Three more are told with another one.
    expect(words.rest).toHaveLength(POLICIES.length - words.first.length - 3);
  });

  it("says what differs first, in words", () => {
    const words = policyWords(
      {
        ...policy,
        retry: { ...policy.retry, max: 0 },
        break_after: 1,
        remaining: 1,
        on_lost_lease: "continue",
        budget: { per_run_usd: 1, per_day_usd: null, per_day_runs: 20 },
      },
      "function",
    );
    const said = Object.fromEntries(words.first.map((line) => [line.name, line.text]));
    expect(said).toMatchObject({
      Retry: "A failed run is not tried again.",
      Timeout: "An attempt may take 5m.",
      "Break after": "Any failure switches it off.",
      "Runs left": "It runs once.",
      "Lost lease": "A run goes on when its node cannot renew its lease, though another node may start it again.",
      Budget: "At most $1 a run, 20 runs a day; then it pauses.",
    });
  });

  it("says which failures of an agent are tried again, which is its default", () => {
    const retry = { ...policy.retry, covers: "start" as const };
    const line = (kind: "agent" | "shell") =>
      policyWords({ ...policy, retry }, kind).first.find(({ name }) => name === "Retry");
    expect(line("agent")).toMatchObject({
      text: "A run that failed before its work began is tried 3 more times, after delays from 2s up to 30s.",
      changed: false,
    });
    expect(line("shell")).toMatchObject({ changed: true });
  });
});
