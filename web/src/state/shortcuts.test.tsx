import { fireEvent, render, screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { characterKeys, listenForKeys, listShortcuts, useShortcut } from "@/state/shortcuts";

const go = vi.fn();
const make = vi.fn();
const search = vi.fn();
const earlier = vi.fn();

function Keys() {
  useShortcut("g n", go, { label: "Nodes" });
  useShortcut("n", make, { label: "New schedule" });
  useShortcut("[", earlier, { label: "Earlier" });
  useShortcut("arrowleft", earlier, { label: "Earlier" });
  useShortcut("mod+k", search, { label: "Search", always: true });
  return <input aria-label="field" />;
}

beforeEach(() => {
  for (const each of [go, make, search, earlier]) each.mockReset();
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
  expect(listShortcuts().map((each) => each.keys)).toEqual(["g n", "n", "[", "arrowleft", "mod+k"]);
});

it("keys that are a character can be switched off, the others stay", () => {
  characterKeys.set("off");
  press("g");
  press("n");
  press("[");
  expect([go, make, earlier].map((each) => each.mock.calls.length)).toEqual([0, 0, 0]);
  press("ArrowLeft");
  press("k", { ctrlKey: true });
  expect([earlier, search].map((each) => each.mock.calls.length)).toEqual([1, 1]);
  expect(listShortcuts().map((each) => each.keys)).toEqual(["arrowleft", "mod+k"]);
  characterKeys.set("on");
});

it("a character that is written with AltGr counts, one with Alt alone is the browser's", () => {
  const write = (isAltGraph: boolean): void => {
    const event = new KeyboardEvent("keydown", { key: "[", altKey: true, ctrlKey: isAltGraph, bubbles: true });
    vi.spyOn(event, "getModifierState").mockImplementation((name) => isAltGraph && name === "AltGraph");
    fireEvent(document.body, event);
  };
  write(false);
  expect(earlier).not.toHaveBeenCalled();
  write(true);
  expect(earlier).toHaveBeenCalledOnce();
});
