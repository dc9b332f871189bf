import type { ReactNode } from "react";
import type { AnsiPiece } from "./ansi";
import { ansiCss } from "./ansiColour";

export interface Highlight {
  start: number;
  end: number;
  current: boolean;
}

interface Props {
  pieces: readonly AnsiPiece[];
  highlights?: readonly Highlight[];
}

/** Output as text in spans, with the hits of a search marked. There is no HTML in it, whatever the program printed. */
export function AnsiText({ pieces, highlights = [] }: Props) {
  const parts: ReactNode[] = [];
  let position = 0;
  for (const piece of pieces) {
    const css = ansiCss(piece.style);
    const content = marked(piece.text, position, highlights);
    parts.push(
      css === undefined ? (
        <span key={position}>{content}</span>
      ) : (
        <span key={position} style={css}>
          {content}
        </span>
      ),
    );
    position += piece.text.length;
  }
  return <>{parts}</>;
}

function marked(text: string, offset: number, highlights: readonly Highlight[]): ReactNode {
  const here = highlights.filter((each) => each.start < offset + text.length && each.end > offset);
  if (here.length === 0) return text;
  const parts: ReactNode[] = [];
  let done = 0;
  for (const each of here) {
    const start = Math.max(0, each.start - offset);
    const end = Math.min(text.length, each.end - offset);
    parts.push(
      text.slice(done, start),
      <mark
        key={start}
        className={each.current ? "rounded-xs bg-accent text-accent-ink" : "rounded-xs bg-warn-soft text-warn"}
      >
        {text.slice(start, end)}
      </mark>,
    );
    done = end;
  }
  return [...parts, text.slice(done)];
}
