import { renderHook } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { useIntent } from "@/api/intent";
import { ProblemError, unreachable } from "@/api/problem";

const refused = (status: number, name: string) => new ProblemError({ type: `/problems/${name}`, title: name, status });
const send = vi.fn(async (_given: string, _headers: Record<string, string>) => "done");
const keys = (): (string | undefined)[] => send.mock.calls.map(([, headers]) => headers["Idempotency-Key"]);

beforeEach(() => {
  vi.useFakeTimers();
  send.mockReset().mockResolvedValue("done");
});

const press = () => renderHook(() => useIntent(send)).result.current;

it("pressed again after no answer it is the same wish, after an answer another", async () => {
  const run = press();
  send.mockRejectedValueOnce(unreachable());
  await expect(run("nightly")).rejects.toThrow("does not answer");
  await run("nightly");
  await run("nightly");
  const [first, second, third] = keys();
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(second).toBe(first);
  expect(third).not.toBe(first);
});

it("a refusal is an answer, and another request has another key", async () => {
  const run = press();
  send.mockRejectedValueOnce(refused(409, "conflict")).mockRejectedValueOnce(unreachable());
  await expect(run("nightly")).rejects.toThrow();
  await expect(run("nightly")).rejects.toThrow();
  await run("nightly, forced");
  expect(new Set(keys()).size).toBe(3);
});

it("while the first request is under way, its answer is waited for", async () => {
  const run = press();
  send.mockRejectedValueOnce(refused(409, "request-under-way"));
  const answer = run("nightly");
  await vi.advanceTimersByTimeAsync(1000);
  expect(await answer).toBe("done");
  expect(new Set(keys()).size).toBe(1);
});

it("much later the same is wished anew", async () => {
  const run = press();
  send.mockRejectedValueOnce(unreachable());
  await expect(run("nightly")).rejects.toThrow();
  vi.advanceTimersByTime(3_600_000);
  await run("nightly");
  expect(new Set(keys()).size).toBe(2);
});
