// The window of the timeline as it stands in the URL, and the larger one that is asked of the server.

import { SPANS, type Span, windowStart } from "@/components/charts/gantt";

export interface Window {
  span: Span;
  /** Where somebody panned to; null follows the time. */
  at: number | null;
}

export function windowOf(search: Record<string, string | undefined>): Window {
  const span = (Object.keys(SPANS) as Span[]).find((each) => each === search["span"]) ?? "24h";
  const at = Date.parse(search["at"] ?? "");
  return { span, at: Number.isFinite(at) ? at : null };
}

export function searchOf({ span, at }: Window): Record<string, string | undefined> {
  return {
    span: span === "24h" ? undefined : span,
    at: at === null ? undefined : new Date(Math.round(at / 1000) * 1000).toISOString().replace(".000Z", "Z"),
  };
}

/** A quarter of a span more on both sides, in steps, so that a little panning asks for nothing new. */
export function askedSpan(window: Window, now: number): { from: string; to: string } {
  const length = SPANS[window.span];
  const step = length / 4;
  const start = windowStart(window.span, window.at, now);
  const from = Math.floor((start - step) / step) * step;
  const to = Math.ceil((start + length + step) / step) * step;
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
}

/** Another span around the same middle; while it follows the time it goes on following. */
export function zoomed(window: Window, span: Span): Window {
  if (window.at === null) return { span, at: null };
  const middle = window.at + SPANS[window.span] / 2;
  return { span, at: Math.round(middle - SPANS[span] / 2) };
}

export function panned(window: Window, milliseconds: number, now: number): Window {
  return { span: window.span, at: Math.round(windowStart(window.span, window.at, now) + milliseconds) };
}
