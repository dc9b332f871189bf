import { fireEvent, render, screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { listenForKeys, listShortcuts, useShortcut } from "@/state/shortcuts";

const go = vi.fn();
const make = vi.fn();
const search = vi.fn();

function Keys() {
  useShortcut("g n", go, { label: "Nodes" });
  useShortcut("n", make, { label: "New schedule" });
  useShortcut("mod+k", search, { label: "Search", always: true });
  return <input aria-label="field" />;
}

beforeEach(() => {
  for (const each of [go, make, search]) each.mockReset();
  const stop = listenForKeys();
  render(<Keys />);
  return stop;
});

const press = (key: string, more: Record<string, unknown> = {}, target: Element = document.body): void => {
  fireEvent.keyDown(target, { key, ...more });
};

it("a sequence wins over its last key alone", () => {
  press("g");
  press("n");
  expect([go.mock.calls.length, make.mock.calls.length]).toEqual([1, 0]);
  press("n");
  expect(make).toHaveBeenCalledOnce();
});

it("typing in a field triggers nothing but what works always", () => {
  const field = screen.getByLabelText("field");
  press("n", {}, field);
  expect(make).not.toHaveBeenCalled();
  press("k", { ctrlKey: true }, field);
  expect(search).toHaveBeenCalledOnce();
});

it("the list holds what works now", () => {
  expect(listShortcuts().map((each) => each.keys)).toEqual(["g n", "n", "mod+k"]);
});
