import { describe, expect, it } from "vitest";
import { PLAIN, paletteHex, parseAnsi, plainText } from "./ansi";

const ESC = "\x1b";

function shown(line: string): [string, Record<string, unknown>][] {
  return parseAnsi(line).pieces.map((piece) => [
    piece.text,
    Object.fromEntries(
      Object.entries(piece.style).filter(([name, value]) => value !== PLAIN[name as keyof typeof PLAIN]),
    ),
  ]);
}

describe("parseAnsi", () => {
  it("gives plain text as one piece", () => {
    expect(shown("hello <b>world</b>")).toEqual([["hello <b>world</b>", {}]]);
  });

  it("reads the sixteen colours, bold, dim, underline and reset", () => {
    expect(shown(`a${ESC}[31mred${ESC}[1;4mloud${ESC}[0mplain${ESC}[92;2mdim`)).toEqual([
      ["a", {}],
      ["red", { foreground: 1 }],
      ["loud", { foreground: 1, bold: true, underline: true }],
      ["plain", {}],
      ["dim", { foreground: 10, dim: true }],
    ]);
    expect(shown(`${ESC}[44;97mx${ESC}[39;49my${ESC}[mz`)).toEqual([
      ["x", { background: 4, foreground: 15 }],
      ["y", {}],
      ["z", {}],
    ]);
  });

  it("reads 256 colours and true colours in both spellings", () => {
    expect(shown(`${ESC}[38;5;208mo`)).toEqual([["o", { foreground: 208 }]]);
    expect(shown(`${ESC}[48;2;1;20;255;1mt`)).toEqual([["t", { background: "#0114ff", bold: true }]]);
    expect(shown(`${ESC}[38:2::1:20:255mt`)).toEqual([["t", { foreground: "#0114ff" }]]);
    expect(shown(`${ESC}[38;5;999mt`)).toEqual([["t", {}]]);
  });

  it("leaves out every other escape and control", () => {
    expect(
      shown(`${ESC}[2K${ESC}[1;1Hhi${ESC}]8;;https://example.com${ESC}\\link${ESC}]0;title\x07!\x07${ESC}(B${ESC}=`),
    ).toEqual([["hilink!", {}]]);
    expect(plainText(`a${ESC}[?25lb${ESC}[31mc${ESC}`)).toBe("abc");
    expect(plainText("a\tb")).toBe("a\tb");
  });

  it("shows what a progress line shows last, in the colour that was switched on before", () => {
    expect(plainText("10%\r50%\r100%")).toBe("100%");
    expect(plainText("done\r")).toBe("done");
    expect(shown(`${ESC}[32m10%\r20%`)).toEqual([["20%", { foreground: 2 }]]);
    expect(plainText("abc\b\bd")).toBe("ad");
  });

  it("carries a style to the next line", () => {
    const first = parseAnsi(`${ESC}[1;33mwarning`);
    expect(parseAnsi("still", first.style).pieces[0]?.style).toMatchObject({ bold: true, foreground: 3 });
  });

  it("knows the colours of the palette", () => {
    expect([16, 21, 196, 231, 232, 255].map(paletteHex)).toEqual([
      "#000000",
      "#0000ff",
      "#ff0000",
      "#ffffff",
      "#080808",
      "#eeeeee",
    ]);
  });
});
