/** One key for what somebody wants done once: pressed again after "no answer", it is not done twice. */

import { useRef } from "react";
import { ProblemError } from "@/api/client";

/** Later the same is another wish. */
const FORGOTTEN_AFTER = 5 * 60_000;
const TRIES = 10;

const newKey = (): string =>
  // Not randomUUID: that is only there on https and loopback.
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Whether it may have been done without our knowing. */
const isUnanswered = (error: unknown): boolean =>
  error instanceof ProblemError && (error.status === 0 || error.status >= 500 || isUnderWay(error));

/** The first request with the key is not through yet. */
const isUnderWay = (error: unknown): boolean =>
  error instanceof ProblemError && error.problem.type.endsWith("/request-under-way");

const rest = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

type KeyHeader = Record<"Idempotency-Key", string>;

/** For `mutationFn`: gives the request its key, the same until an answer came or another thing is asked for. */
export function useIntent<V, T>(send: (given: V, headers: KeyHeader) => Promise<T>): (given: V) => Promise<T> {
  const held = useRef<{ asked: string; key: string; since: number } | null>(null);
  return async (given) => {
    const asked = JSON.stringify(given);
    if (held.current?.asked !== asked || Date.now() - held.current.since > FORGOTTEN_AFTER) {
      held.current = { asked, key: newKey(), since: Date.now() };
    }
    const { key } = held.current;
    for (let tries = 1; ; tries += 1) {
      try {
        const answer = await send(given, { "Idempotency-Key": key });
        held.current = null;
        return answer;
      } catch (error) {
        if (!isUnanswered(error)) held.current = null;
        if (!isUnderWay(error) || tries === TRIES) throw error;
        await rest(1);
      }
    }
  };
}
