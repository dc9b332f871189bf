/** The lines of one run: all that is there, then what comes, over the live stream or by asking again. */

import { useCallback, useEffect, useRef, useState } from "react";
import { useConnection, useLive } from "@/api/live";
import { fetchLines } from "@/api/queries/runs";
import type { OutputLine } from "@/api/types";
import { LineStore } from "./lines";

const ASK_AGAIN_MS = 2000;

export interface Output {
  store: LineStore;
  version: number;
  loading: boolean;
  error: unknown;
  reload: () => void;
}

/** Use it with a key for each run: its store begins empty. */
export function useOutput(id: number, live: boolean): Output {
  const [store] = useState(() => new LineStore());
  const [version, setVersion] = useState(0);
  const [loading, setLoading] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const [ended, setEnded] = useState(false);
  const gathered = useRef<OutputLine[]>([]);
  const frame = useRef(0);
  const connected = useConnection().state === "live";

  const take = useCallback(
    (lines: readonly OutputLine[]) => {
      gathered.current.push(...lines);
      // A chatty run tells many times in a frame; the page is drawn once for them.
      if (frame.current !== 0) return;
      frame.current = requestAnimationFrame(() => {
        frame.current = 0;
        const news = gathered.current;
        gathered.current = [];
        if (store.add(news)) setVersion((before) => before + 1);
      });
    },
    [store],
  );
  useEffect(() => () => cancelAnimationFrame(frame.current), []);

  const load = useCallback(
    async (signal?: AbortSignal) => {
      try {
        let more = true;
        // A long output comes in portions, each shown when it is there.
        while (more) {
          const answer = await fetchLines(id, store.lastNumber, signal);
          if (store.add(answer.lines)) setVersion((before) => before + 1);
          setEnded(answer.ended);
          more = answer.more;
        }
        setError(null);
      } catch (problem) {
        if (signal?.aborted !== true) setError(problem);
      }
      if (signal?.aborted !== true) setLoading(false);
    },
    [id, store],
  );

  // At once, and again when the run has ended: the last lines may have come after the stream was closed.
  useEffect(() => {
    const stop = new AbortController();
    void load(stop.signal);
    return () => stop.abort();
  }, [load, live]);

  useLive(
    live && !loading ? `output:${id}` : null,
    (message) => {
      if (message.type === "lines") take(message.lines);
      if (message.type === "ended" || message.type === "skipped") void load();
    },
    String(store.lastNumber),
  );

  // Without the stream the page asks.
  useEffect(() => {
    if (!live || ended || connected) return undefined;
    const timer = setInterval(() => void load(), ASK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [live, ended, connected, load]);

  return { store, version, loading, error, reload: () => void load() };
}
