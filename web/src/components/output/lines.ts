// The lines of a run's output as they come: kept in order, each once, with their text parsed when it is needed.

import type { OutputLine } from "@/api/types";
import { type AnsiLine, type AnsiStyle, PLAIN, parseAnsi, plainText } from "./ansi";

export class LineStore {
  private readonly kept: OutputLine[] = [];
  private readonly plain: (string | undefined)[] = [];
  /** The style at the beginning of each line, up to `styled`. */
  private readonly styles: AnsiStyle[] = [PLAIN];
  private readonly parsed = new Map<number, AnsiLine>();
  private last = 0;
  private numbered = 0;

  get count(): number {
    return this.kept.length;
  }

  /** The number of the last line that is here: where reading goes on. */
  get lastNumber(): number {
    return this.last;
  }

  /** How many lines the run printed and how many of them are here: of a long output the middle is cut. */
  get extent(): { printed: number; kept: number } {
    return { printed: this.last, kept: this.numbered };
  }

  get withStamps(): boolean {
    return this.kept.some((line) => line.at !== null);
  }

  /** Adds what is new. A stream that begins again after a drop repeats lines: those are left out. */
  add(lines: readonly OutputLine[]): boolean {
    const before = this.kept.length;
    let remark: OutputLine | null = null;
    for (const line of lines) {
      if (line.number === null) {
        remark = line;
      } else {
        if (line.number > this.last) {
          if (remark !== null) this.kept.push(remark);
          this.kept.push(line);
          this.last = line.number;
          this.numbered += 1;
        } else if (line.number === this.last && remark !== null && this.kept.length > before) {
          // The rest of a long line that was cut in its middle has its number, and comes together with it.
          this.kept.push(remark, line);
        }
        // A remark before a line that was here already was here already too.
        remark = null;
      }
    }
    if (remark !== null && this.kept.at(-1)?.line !== remark.line) this.kept.push(remark);
    return this.kept.length > before;
  }

  line(index: number): OutputLine {
    const found = this.kept[index];
    if (found === undefined) throw new RangeError(`there is no line ${index}`);
    return found;
  }

  /** The text without colours. */
  text(index: number): string {
    return (this.plain[index] ??= plainText(this.line(index).line));
  }

  /** The line in pieces; a colour that was switched on in an earlier line still holds. */
  pieces(index: number): AnsiLine {
    const known = this.parsed.get(index);
    if (known !== undefined) return known;
    for (let each = this.styles.length - 1; each < index; each += 1) {
      const line = this.line(each).line;
      const start = this.styles[each] ?? PLAIN;
      this.styles.push(line.includes("\x1b[") || line.includes("\x9b") ? parseAnsi(line, start).style : start);
    }
    const made = parseAnsi(this.line(index).line, this.styles[index] ?? PLAIN);
    if (this.parsed.size > 2000) this.parsed.clear();
    this.parsed.set(index, made);
    return made;
  }

  /** The number of the attempt that begins with this line; null within one. `starts` are those of all attempts. */
  attemptAt(index: number, starts: readonly number[]): number | null {
    const attempt = this.attemptOf(index, starts);
    if (attempt === null) return null;
    let before = index - 1;
    // A remark has no time.
    while (before >= 0 && this.line(before).at === null) before -= 1;
    return attempt === (before < 0 ? 1 : this.attemptOf(before, starts)) ? null : attempt;
  }

  private attemptOf(index: number, starts: readonly number[]): number | null {
    const { at } = this.line(index);
    return at === null ? null : Math.max(1, starts.filter((start) => start <= Date.parse(at)).length);
  }

  allText(): string {
    const parts = new Array<string>(this.count);
    for (let index = 0; index < this.count; index += 1) parts[index] = this.text(index);
    return parts.join("\n");
  }
}
