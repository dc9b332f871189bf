/** What a run of the conversation prints while it is under way: the last lines, as they come. */

import { Link } from "@tanstack/react-router";
import { ProblemNote } from "@/components/ProblemNote";
import { AnsiText } from "@/components/output/AnsiText";
import { useOutput } from "@/components/output/useOutput";
import { counted } from "@/time/format";
import "@/components/output/ansi.css";

const SHOWN = 40;

export function LiveOutput({ run }: { run: number }) {
  const { store, loading, error, reload } = useOutput(run, true);
  const from = Math.max(0, store.count - SHOWN);
  const places = Array.from({ length: store.count - from }, (_, place) => from + place);
  if (error !== null && store.count === 0) return <ProblemNote error={error} onRetry={reload} />;
  if (store.count === 0) return <p className="text-sm text-muted">{loading ? "Loading…" : "Nothing said yet."}</p>;
  return (
    // Every line would be read out as it comes: the answer is, when it is there.
    <div aria-live="off">
      {from > 0 && (
        <Link to="/runs/$id" params={{ id: String(run) }} className="text-xs text-muted hover:underline">
          {counted(from, "earlier line")}
        </Link>
      )}
      <div
        role="group"
        aria-label={`Output of run ${run}`}
        className="text-sm break-words whitespace-pre-wrap [overflow-wrap:anywhere]"
      >
        {places.map((place) => (
          <div key={place} className="min-h-5">
            <AnsiText pieces={store.pieces(place).pieces} />
          </div>
        ))}
      </div>
    </div>
  );
}
