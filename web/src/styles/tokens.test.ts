import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const css = readFileSync("src/styles/tokens.css", "utf8");
const [lightText = "", darkText = ""] = css.split(':root[data-theme="dark"]');

const read = (text: string): Map<string, string> =>
  new Map([...text.matchAll(/--([a-z1-4-]+):\s*(#[0-9a-f]{6});/g)].map((match) => [match[1] ?? "", match[2] ?? ""]));

const luminance = (hex: string): number => {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((start) => parseInt(hex.slice(start, start + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};

const contrast = (one: string, other: string): number => {
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
};

const TONES = ["good", "bad", "warn", "info", "wait", "quiet"];
const BACKGROUNDS = ["canvas", "surface", "raised", "sunken"];
const TEXTS = ["ink", "muted", "accent", "danger", ...TONES];

const textPairs: [string, string][] = [
  ...TEXTS.flatMap((text) => BACKGROUNDS.map((background): [string, string] => [text, background])),
  ...TONES.map((tone): [string, string] => [tone, `${tone}-soft`]),
  ...TONES.map((tone): [string, string] => ["ink", `${tone}-soft`]),
  ...TONES.map((tone): [string, string] => ["muted", `${tone}-soft`]),
  ["accent-ink", "accent"],
  ["accent-ink", "accent-hover"],
  ["danger-ink", "danger"],
  ["danger-ink", "danger-hover"],
  ["accent", "accent-soft"],
  ["ink", "accent-soft"],
  ["muted", "accent-soft"],
];

const STATES = ["queued", "running", "succeeded", "errors", "failed", "cancelled", "skipped", "missed", "expired", "superseded"];
const HEAT = ["good", "warn", "bad", "idle"].flatMap((tone) => [1, 2, 3, 4].map((level) => `heat-${tone}-${level}`));
const shapePairs: [string, string][] = [
  ...HEAT.map((heat): [string, string] => [heat, "surface"]),
  ...STATES.flatMap((state) => ["canvas", "surface"].map((on): [string, string] => [`state-${state}`, on])),
  ...BACKGROUNDS.map((background): [string, string] => ["focus", background]),
  ...BACKGROUNDS.map((background): [string, string] => ["control", background]),
];

describe.each([
  ["light", read(lightText)],
  ["dark", read(darkText)],
])("in the %s theme", (_theme, tokens) => {
  const of = (name: string): string => {
    const found = tokens.get(name);
    if (found === undefined) throw new Error(`there is no token --${name}`);
    return found;
  };

  it.each(textPairs)("text in %s is readable on %s", (text, background) => {
    expect(contrast(of(text), of(background))).toBeGreaterThanOrEqual(4.5);
  });

  it.each(shapePairs)("a shape in %s can be told from %s", (shape, background) => {
    expect(contrast(of(shape), of(background))).toBeGreaterThanOrEqual(3);
  });
});

it("both themes have the same colours", () => {
  expect([...read(darkText).keys()].sort()).toEqual([...read(lightText).keys()].sort());
});
