import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from "react";
import { followAfterScroll } from "./follow";

export interface Follow {
  following: boolean;
  setFollowing: (following: boolean) => void;
  onScroll: () => void;
}

/** Keeps an element at its end while it grows, until somebody scrolls up. */
export function useFollow(element: RefObject<HTMLElement | null>, begin: boolean, size: number): Follow {
  const [following, setFollowing] = useState(begin);
  const top = useRef(0);

  useLayoutEffect(() => {
    const view = element.current;
    if (!following || view === null) return;
    view.scrollTop = view.scrollHeight;
    top.current = view.scrollTop;
  }, [element, following, size]);

  const onScroll = useCallback(() => {
    const view = element.current;
    if (view === null) return;
    const place = { top: view.scrollTop, viewHeight: view.clientHeight, fullHeight: view.scrollHeight };
    const before = top.current;
    top.current = place.top;
    setFollowing((now) => followAfterScroll(now, before, place));
  }, [element]);

  return { following, setFollowing, onScroll };
}
