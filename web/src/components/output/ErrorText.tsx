import { useState } from "react";
import { plainText } from "./ansi";
import { LONG, shortened } from "./shortened";

const SHORT = 6;

interface Props {
  text: string;
  /** The place where all of it is told; elsewhere it is folded. */
  whole?: boolean;
}

/** An error as it was told, in its lines; a long one is folded and keeps its end, where Python says what it was. Opened,
 *  it scrolls in its box. */
export function ErrorText({ text, whole = false }: Props) {
  const [open, setOpen] = useState(whole);
  const lines = text.trimEnd().split("\n").map(plainText);
  const last = lines.slice(-SHORT);
  const isLong = lines.length > SHORT || last.some((line) => line.length > LONG);
  const folded = [...(lines.length > SHORT ? ["…"] : []), ...last.map((line) => shortened(line))];
  return (
    <div className="mt-2">
      <pre
        tabIndex={isLong && open ? 0 : undefined}
        className="max-h-80 overflow-auto rounded-md bg-bad-soft px-3 py-2 font-mono text-xs whitespace-pre-wrap text-bad"
      >
        {(open ? lines : folded).join("\n")}
      </pre>
      {isLong && !whole && (
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="mt-1 text-xs font-medium text-accent hover:underline"
        >
          {open ? "Show less" : lines.length > SHORT ? `Show all ${lines.length} lines` : "Show all"}
        </button>
      )}
    </div>
  );
}
