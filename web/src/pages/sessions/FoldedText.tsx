/** A text of the conversation as it was written, with its line breaks; a long one is folded. A list has only the
 *  beginning of a very long one: the rest is loaded when it is asked for. */

import { type ReactNode, useState } from "react";
import { useRun } from "@/api/queries/runs";
import type { Run } from "@/api/types";
import { classes } from "@/components/classes";
import { ProblemNote } from "@/components/ProblemNote";
import { plainText } from "@/components/output/ansi";

const MOST_LINES = 20;
const MOST_LETTERS = 2400;

/** The beginning of a long text; all of another. */
export function foldedText(text: string): string {
  const lines = text.split("\n").slice(0, MOST_LINES).join("\n");
  return lines.length > MOST_LETTERS ? lines.slice(0, MOST_LETTERS) : lines;
}

interface FoldedTextProps {
  text: string;
  mono?: boolean;
}

export function FoldedText({ text, mono = false }: FoldedTextProps) {
  const [open, setOpen] = useState(false);
  const beginning = foldedText(text);
  const isLong = beginning.length < text.length;
  return (
    <>
      <Words text={open || !isLong ? text : `${beginning}…`} mono={mono} />
      {isLong && (
        <FoldButton open={open} onToggle={() => setOpen(!open)}>
          {open ? "Show less" : "Show all"}
        </FoldButton>
      )}
    </>
  );
}

interface RunTextProps {
  run: Run;
  /** Where the text comes from. */
  part: "work" | "result";
  read: (run: Run) => string;
  mono?: boolean;
}

/** A text of a run. */
export function RunText({ run, part, read, mono }: RunTextProps) {
  const [wanted, setWanted] = useState(false);
  const isCut = run.cut?.includes(part) ?? false;
  const whole = useRun(run.id, isCut && wanted);
  if (!isCut) return <FoldedText text={read(run)} mono={mono} />;
  if (whole.data !== undefined && wanted) {
    return (
      <>
        <Words text={read(whole.data)} mono={mono} />
        <FoldButton open onToggle={() => setWanted(false)}>
          Show less
        </FoldButton>
      </>
    );
  }
  return (
    <>
      <Words text={foldedText(read(run))} mono={mono} />
      <FoldButton open={false} onToggle={() => setWanted(true)}>
        {wanted && whole.error === null ? "Loading…" : "Show all"}
      </FoldButton>
      {whole.error !== null && <ProblemNote error={whole.error} onRetry={() => void whole.refetch()} />}
    </>
  );
}

function Words({ text, mono = false }: FoldedTextProps) {
  return (
    <p
      className={classes(
        "break-words whitespace-pre-wrap [overflow-wrap:anywhere]",
        mono ? "font-mono text-xs" : "text-sm",
      )}
    >
      {text.split("\n").map(plainText).join("\n")}
    </p>
  );
}

function FoldButton({ open, onToggle, children }: { open: boolean; onToggle: () => void; children: ReactNode }) {
  return (
    <button
      type="button"
      aria-expanded={open}
      onClick={onToggle}
      className="mt-1 rounded text-xs font-medium text-accent hover:underline"
    >
      {children}
    </button>
  );
}
