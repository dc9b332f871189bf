/** The conversation of a session: oldest at the top, at its end while it grows, unless the reader scrolled up. */

import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button } from "@/components/Button";
import { classes, FILL } from "@/components/classes";
import { ProblemNote } from "@/components/ProblemNote";
import type { RowsEnd } from "@/components/rowsEnd";
import { useFollow } from "@/components/output/useFollow";
import type { Entry } from "@/pages/sessions/entries";
import { ThreadRun, Unsent } from "@/pages/sessions/ThreadRun";

interface ThreadProps {
  entries: readonly Entry[];
  /** Texts that are on their way to the server. */
  unsent: readonly string[];
  /** How the list goes on: with what is earlier. */
  earlier: RowsEnd;
}

export function Thread({ entries, unsent, earlier }: ThreadProps) {
  const view = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { following, setFollowing, onScroll } = useFollow(view, true, useHeight(content));
  const keepPlace = useKeptPlace(view, entries[0]?.run.id, following);
  useEffect(() => {
    // Whoever writes wants to see the answer.
    if (unsent.length > 0) setFollowing(true);
  }, [unsent.length, setFollowing]);
  return (
    <div className={classes(FILL, "relative")}>
      <div
        ref={view}
        role="log"
        aria-label="Conversation"
        tabIndex={0}
        onScroll={() => {
          onScroll();
          keepPlace();
        }}
        className="min-h-44 flex-[1_1_0px] overflow-y-auto [overflow-anchor:none] focus-visible:-outline-offset-2"
      >
        <div ref={content} className="flex flex-col gap-4 p-3 sm:p-4">
          <Earlier earlier={earlier} onAsk={() => setFollowing(false)} />
          {entries.map(({ run, messages }) => (
            <ThreadRun key={run.id} run={run} messages={messages} />
          ))}
          {unsent.map((text, place) => (
            <Unsent key={place} text={text} />
          ))}
        </div>
      </div>
      {!following && (
        <div className="absolute inset-x-0 bottom-3 flex justify-center">
          <Button
            size="small"
            variant="primary"
            icon="chevronDown"
            className="shadow-raised"
            onClick={() => setFollowing(true)}
          >
            To the newest
          </Button>
        </div>
      )}
    </div>
  );
}

function Earlier({ earlier, onAsk }: { earlier: RowsEnd; onAsk: () => void }) {
  const { hasMore = false, isBusy = false, endError = null, onEnd } = earlier;
  const ask = (): void => {
    onAsk();
    onEnd?.();
  };
  if (endError !== null) return <ProblemNote error={endError} onRetry={ask} />;
  if (!hasMore) return null;
  return (
    <div className="flex justify-center">
      <Button size="small" busy={isBusy} onClick={ask}>
        Earlier messages
      </Button>
    </div>
  );
}

/** How high an element is, kept up to date. */
function useHeight(element: RefObject<HTMLElement | null>): number {
  const [height, setHeight] = useState(0);
  useLayoutEffect(() => {
    const watched = element.current;
    if (watched === null) return undefined;
    const measure = (): void => setHeight(watched.offsetHeight);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(watched);
    return () => observer.disconnect();
  }, [element]);
  return height;
}

/** Leaves in sight what the reader looks at when something is put above it. Answers what to call after a scroll. */
function useKeptPlace(view: RefObject<HTMLElement | null>, first: number | undefined, following: boolean): () => void {
  const fromEnd = useRef(0);
  const seen = useRef(first);
  const keep = (): void => {
    if (view.current !== null) fromEnd.current = view.current.scrollHeight - view.current.scrollTop;
  };
  useLayoutEffect(() => {
    if (view.current !== null && seen.current !== first && !following) {
      view.current.scrollTop = view.current.scrollHeight - fromEnd.current;
    }
    seen.current = first;
    keep();
  });
  return keep;
}
