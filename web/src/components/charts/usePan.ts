import { type PointerEvent, type RefObject, useEffect, useRef, useState } from "react";

interface Pan {
  /** Milliseconds that the drawing is moved by while somebody drags it. */
  offset: number;
  dragging: boolean;
  handlers: {
    onPointerDown: (event: PointerEvent) => void;
    onPointerMove: (event: PointerEvent) => void;
    onPointerUp: () => void;
    onPointerCancel: () => void;
  };
}

const SETTLE_MS = 160;
const SLOP = 4;

/** Dragging and sideways scrolling move the window; it is told once the hand rests. */
export function usePan(
  element: RefObject<HTMLElement | null>,
  perPixel: number,
  onPan: (milliseconds: number) => void,
): Pan {
  const [offset, setOffset] = useState(0);
  const [dragging, setDragging] = useState(false);
  const start = useRef<number | null>(null);
  const latest = useRef({ offset, perPixel, onPan });
  latest.current = { offset, perPixel, onPan };

  const settle = () => {
    const moved = latest.current.offset;
    setOffset(0);
    if (moved !== 0) latest.current.onPan(moved);
  };

  useEffect(() => {
    const watched = element.current;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onWheel = (event: WheelEvent) => {
      const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
      if (Math.abs(sideways) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
      event.preventDefault();
      setOffset((before) => before + sideways * latest.current.perPixel);
      clearTimeout(timer);
      timer = setTimeout(settle, SETTLE_MS);
    };
    // Not passive: the page must not be swiped back while the timeline is moved.
    watched?.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      clearTimeout(timer);
      watched?.removeEventListener("wheel", onWheel);
    };
  }, [element]);

  const end = () => {
    if (dragging) settle();
    start.current = null;
    setDragging(false);
  };

  return {
    offset,
    dragging,
    handlers: {
      onPointerDown: (event) => {
        if (event.button === 0) start.current = event.clientX;
      },
      onPointerMove: (event) => {
        if (start.current === null) return;
        const moved = start.current - event.clientX;
        // A click with a trembling hand is no drag; capturing at once would also swallow clicks on bars.
        if (!dragging && Math.abs(moved) < SLOP) return;
        if (!dragging) {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDragging(true);
        }
        setOffset(moved * perPixel);
      },
      onPointerUp: end,
      onPointerCancel: end,
    },
  };
}
