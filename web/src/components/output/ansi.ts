// ANSI colours of program output, as styled pieces of text. Never HTML: what is not a colour is dropped.

export interface AnsiStyle {
  /** 0..255 of the palette, or `#rrggbb`; null is the page's own colour. */
  foreground: number | string | null;
  background: number | string | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
}

export interface AnsiPiece {
  text: string;
  style: AnsiStyle;
}

export interface AnsiLine {
  pieces: AnsiPiece[];
  /** What holds at the end, and so at the beginning of the next line. */
  style: AnsiStyle;
}

export const PLAIN: AnsiStyle = {
  foreground: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
};

// CSI (with 7-bit or 8-bit start), OSC up to BEL or ST, other string sequences, two-character escapes; then single controls.
const ESCAPES =
  /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[PX^_][^\x1b]*(?:\x1b\\|$)|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]/g;

/** What a terminal would show of a line with carriage returns: the last thing that was written over it. */
function afterReturns(line: string): { hidden: string; shown: string } {
  const trimmed = line.replace(/\r+$/, "");
  const last = trimmed.lastIndexOf("\r");
  if (last < 0) return { hidden: "", shown: trimmed };
  return { hidden: trimmed.slice(0, last), shown: trimmed.slice(last + 1) };
}

/** The pieces of a line whose first character has the style `from`. */
export function parseAnsi(line: string, from: AnsiStyle = PLAIN): AnsiLine {
  const { hidden, shown } = afterReturns(line);
  // What was written over may still have switched a colour on.
  const start = hidden === "" ? from : parsePart(hidden, from).style;
  return parsePart(shown, start);
}

function parsePart(text: string, from: AnsiStyle): AnsiLine {
  const pieces: AnsiPiece[] = [];
  let style = from;
  let position = 0;
  for (const found of text.matchAll(ESCAPES)) {
    push(pieces, text.slice(position, found.index), style);
    position = found.index + found[0].length;
    if (found[0] === "\b") dropLast(pieces);
    else if (found[2] === "m") style = withCodes(style, found[1] ?? "");
  }
  push(pieces, text.slice(position), style);
  return { pieces, style };
}

function push(pieces: AnsiPiece[], text: string, style: AnsiStyle): void {
  if (text === "") return;
  const last = pieces.at(-1);
  if (last?.style === style) last.text += text;
  else pieces.push({ text, style });
}

function dropLast(pieces: AnsiPiece[]): void {
  const last = pieces.at(-1);
  if (last === undefined) return;
  last.text = last.text.slice(0, -1);
  if (last.text === "") pieces.pop();
}

/** The text alone, as it is searched and copied. */
export function plainText(line: string): string {
  const { shown } = afterReturns(line);
  // Most lines hold nothing special, and there may be 100,000 of them.
  if (!/[\x00-\x08\x0b-\x1f\x7f-\x9f]/.test(shown)) return shown;
  return parsePart(shown, PLAIN)
    .pieces.map((piece) => piece.text)
    .join("");
}

/** A style after the numbers of one SGR sequence; `38:2::1:2:3` and `38;2;1;2;3` are the same. */
function withCodes(style: AnsiStyle, parameters: string): AnsiStyle {
  if (!/^[0-9;:]*$/.test(parameters)) return style;
  const next = { ...style };
  const groups = parameters.split(";");
  for (let index = 0; index < groups.length; index += 1) {
    const group = groups[index] ?? "";
    const [code = 0, ...sub] = group.split(":").map((number) => (number === "" ? 0 : Number(number)));
    if (code === 38 || code === 48) {
      const [colour, used] =
        sub.length > 0 ? [colonColour(sub), 0] : semicolonColour(groups.slice(index + 1).map(Number));
      index += used;
      if (colour !== null) next[code === 38 ? "foreground" : "background"] = colour;
    } else {
      apply(next, code, sub[0]);
    }
  }
  return next;
}

function semicolonColour(numbers: number[]): [number | string | null, number] {
  if (numbers[0] === 5) return [palette(numbers[1]), 2];
  if (numbers[0] === 2) return [trueColour(numbers.slice(1, 4)), 4];
  return [null, numbers.length];
}

function colonColour(sub: number[]): number | string | null {
  if (sub[0] === 5) return palette(sub[1]);
  return sub[0] === 2 ? trueColour(sub.slice(-3)) : null;
}

function palette(number: number | undefined): number | null {
  return number !== undefined && number >= 0 && number <= 255 ? number : null;
}

function trueColour(parts: number[]): string | null {
  if (parts.length < 3 || parts.some((part) => !(part >= 0 && part <= 255))) return null;
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

function apply(style: AnsiStyle, code: number, sub: number | undefined): void {
  if (code === 0) Object.assign(style, PLAIN);
  else if (code === 1) style.bold = true;
  else if (code === 2) style.dim = true;
  else if (code === 3) style.italic = true;
  else if (code === 4) style.underline = sub !== 0;
  else if (code === 7) style.inverse = true;
  else if (code === 9) style.strike = true;
  else if (code === 21) style.underline = true;
  else if (code === 22) style.bold = style.dim = false;
  else if (code === 23) style.italic = false;
  else if (code === 24) style.underline = false;
  else if (code === 27) style.inverse = false;
  else if (code === 29) style.strike = false;
  else if (code >= 30 && code <= 37) style.foreground = code - 30;
  else if (code === 39) style.foreground = null;
  else if (code >= 40 && code <= 47) style.background = code - 40;
  else if (code === 49) style.background = null;
  else if (code >= 90 && code <= 97) style.foreground = code - 82;
  else if (code >= 100 && code <= 107) style.background = code - 92;
}

/** `#rrggbb` of the colours 16..255 of the palette: a cube of 6×6×6 and a ramp of greys. */
export function paletteHex(number: number): string {
  const hex = (value: number) => value.toString(16).padStart(2, "0");
  if (number >= 232) return `#${hex(8 + (number - 232) * 10).repeat(3)}`;
  const step = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const cube = number - 16;
  return `#${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((part) => hex(step(part))).join("")}`;
}
