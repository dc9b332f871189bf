import { act, renderHook } from "@testing-library/react";
import { expect, it } from "vitest";
import { useWrap } from "./useWrap";

const watch = (count: number, loading: boolean) => {
  const { result, rerender } = renderHook(({ count: now, loading: is }) => useWrap(now, is), {
    initialProps: { count, loading },
  });
  return { wraps: () => result.current[0], choose: (wrap: boolean) => act(() => result.current[1](wrap)), rerender };
};

it("an output that grows long while it is read stays wrapped", () => {
  const { wraps, rerender } = watch(0, true);
  rerender({ count: 9_990, loading: false });
  expect(wraps()).toBe(true);
  rerender({ count: 10_100, loading: false });
  expect(wraps()).toBe(true);
});

it("one that is long when it is opened begins without, and anybody may choose", () => {
  const { wraps, choose, rerender } = watch(0, true);
  rerender({ count: 10_000, loading: true });
  rerender({ count: 12_000, loading: false });
  expect(wraps()).toBe(false);
  choose(true);
  expect(wraps()).toBe(true);
});
