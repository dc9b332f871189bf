import { useState } from "react";
import { plainText } from "./ansi";

const SHORT = 6;

/** An error as it was told, in its lines; a long one is folded and keeps its end, where Python says what it was. */
export function ErrorText({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const lines = text.trimEnd().split("\n").map(plainText);
  const folded = !open && lines.length > SHORT;
  const shown = folded ? ["…", ...lines.slice(-SHORT)] : lines;
  return (
    <div className="mt-2">
      <pre className="overflow-x-auto rounded-md bg-bad-soft px-3 py-2 font-mono text-xs break-words whitespace-pre-wrap text-bad">
        {shown.join("\n")}
      </pre>
      {lines.length > SHORT && (
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="mt-1 text-xs font-medium text-accent hover:underline"
        >
          {open ? "Show less" : `Show all ${lines.length} lines`}
        </button>
      )}
    </div>
  );
}
