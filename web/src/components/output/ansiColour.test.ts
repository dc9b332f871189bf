import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { PLAIN } from "./ansi";
import { ansiCss, contrast, onBackground } from "./ansiColour";

/** The variables of a style sheet by theme: what dark does not say is as in light. */
function variables(path: string): { light: Record<string, string>; dark: Record<string, string> } {
  const [light = "", dark = ""] = readFileSync(path, "utf8").split(':root[data-theme="dark"]');
  const of = (text: string) =>
    Object.fromEntries([...text.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map((found) => [found[1], found[2]]));
  return { light: of(light), dark: { ...of(light), ...of(dark) } };
}

describe("the colours of output", () => {
  const colours = variables("src/components/output/ansi.css");
  const tokens = variables("src/styles/tokens.css");

  it.each(["light", "dark"] as const)("can be read on a %s page", (theme) => {
    for (let number = 0; number < 16; number += 1) {
      for (const ground of ["surface", "sunken"]) {
        const ratio = contrast(colours[theme][`ansi-${number}`]!, tokens[theme][ground]!);
        expect(ratio, `colour ${number} on ${ground}`).toBeGreaterThanOrEqual(4.5);
      }
    }
  });

  it("keep a program's own pair if it can be read, and mend it if not", () => {
    expect(onBackground("#ffffff", "#000000")).toBe("#ffffff");
    expect(onBackground("#777777", "#808080")).toBe("#000000");
    expect(onBackground(null, "#00005f")).toBe("#ffffff");
  });

  it("become CSS, and plain text becomes none", () => {
    expect(ansiCss(PLAIN)).toBeUndefined();
    expect(ansiCss({ ...PLAIN, foreground: 1, bold: true, underline: true })).toEqual({
      color: "var(--ansi-1)",
      fontWeight: 600,
      textDecorationLine: "underline",
    });
    expect(ansiCss({ ...PLAIN, foreground: 208 })?.color).toBe(
      "oklch(from #ff8700 clamp(var(--ansi-darkest), l, var(--ansi-lightest)) c h)",
    );
    expect(ansiCss({ ...PLAIN, inverse: true })).toEqual({ backgroundColor: "var(--ink)", color: "var(--surface)" });
  });
});
