// When output sticks to its end: scrolling up lets go, reaching the end again holds on.

export interface ScrollPlace {
  top: number;
  viewHeight: number;
  fullHeight: number;
}

const NEAR = 24;

export function isAtEnd(place: ScrollPlace): boolean {
  return place.fullHeight - place.top - place.viewHeight <= NEAR;
}

/** Whether to go on following after a scroll from `before` to `now`. Growth of the content is not a scroll. */
export function followAfterScroll(following: boolean, before: number, now: ScrollPlace): boolean {
  if (now.top < before - 1 && !isAtEnd(now)) return false;
  return following || isAtEnd(now);
}
