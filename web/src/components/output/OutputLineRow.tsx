import { memo } from "react";
import { classes } from "@/components/classes";
import { formatStamp } from "@/time/format";
import { AnsiText, type Highlight } from "./AnsiText";
import type { LineStore } from "./lines";

interface Props {
  store: LineStore;
  index: number;
  wrap: boolean;
  stamps: boolean;
  zone: string;
  digits: number;
  /** The attempt that begins with it. */
  attempt: number | null;
  highlights: readonly Highlight[];
}

function Row({ store, index, wrap, stamps, zone, digits, attempt, highlights }: Props) {
  const line = store.line(index);
  if (line.number === null) {
    return <div className="my-px bg-warn-soft px-3 text-center text-warn select-none">{line.line}</div>;
  }
  return (
    <div className={classes("flex hover:bg-sunken", attempt !== null && "border-t border-wait")}>
      <span
        aria-hidden="true"
        className="sticky left-0 box-border shrink-0 bg-surface px-3 text-right text-muted select-none"
        style={{ width: `calc(${digits}ch + 1.5rem)` }}
      >
        {line.number}
      </span>
      {stamps && line.at !== null && (
        <span className="w-[14ch] shrink-0 text-muted select-none" title={line.at}>
          {formatStamp(Date.parse(line.at), zone)}
        </span>
      )}
      <span className={wrap ? "min-w-0 flex-1 pr-3 break-words whitespace-pre-wrap" : "pr-3 whitespace-pre"}>
        <AnsiText pieces={store.pieces(index).pieces} highlights={highlights} />
      </span>
      {attempt !== null && (
        <span className="sticky right-0 ml-auto h-5 shrink-0 bg-wait-soft px-3 font-sans text-wait select-none">
          attempt {attempt}
        </span>
      )}
    </div>
  );
}

export const OutputLineRow = memo(Row);
