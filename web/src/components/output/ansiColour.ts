// From the style of a piece of output to CSS. Text stays readable on a light and on a dark page.

import type { CSSProperties } from "react";
import { type AnsiStyle, PLAIN, paletteHex } from "./ansi";

/** The sixteen colours as they stand behind text: there they need not be readable themselves. */
const BEHIND = [
  "#1a1a23",
  "#b3261e",
  "#0f6b3a",
  "#855000",
  "#1a56b8",
  "#8a2b9c",
  "#0b6472",
  "#d5d6de",
  "#63646f",
  "#e5534b",
  "#3fb56f",
  "#e0a040",
  "#5a9bf5",
  "#c678dd",
  "#4fbecd",
  "#ffffff",
];

function hexOf(colour: number | string): string {
  if (typeof colour === "string") return colour;
  return BEHIND[colour] ?? paletteHex(colour);
}

/** The colour of text on the page's own background. */
function asText(colour: number | string): string {
  if (typeof colour === "number" && colour < 16) return `var(--ansi-${colour})`;
  return `oklch(from ${hexOf(colour)} clamp(var(--ansi-darkest), l, var(--ansi-lightest)) c h)`;
}

/** Relative luminance, as WCAG computes it. */
function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
    const value = parseInt(hex.slice(start, start + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((left, right) => right - left);
  return ((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05);
}

/** On a background that the program chose: its own colour if that can be read, else black or white. */
export function onBackground(foreground: string | null, background: string): string {
  if (foreground !== null && contrast(foreground, background) >= 4.5) return foreground;
  return contrast("#ffffff", background) >= contrast("#000000", background) ? "#ffffff" : "#000000";
}

export function ansiCss(style: AnsiStyle): CSSProperties | undefined {
  if (style === PLAIN) return undefined;
  const css: CSSProperties = {};
  const [front, back] = style.inverse ? [style.background, style.foreground] : [style.foreground, style.background];
  if (back !== null) {
    css.backgroundColor = hexOf(back);
    css.color = onBackground(front === null ? null : hexOf(front), hexOf(back));
  } else if (style.inverse) {
    css.backgroundColor = "var(--ink)";
    css.color = "var(--surface)";
  } else if (front !== null) {
    css.color = asText(front);
  }
  if (style.bold) css.fontWeight = 600;
  // Dimmed text must stay readable, so it takes the muted colour instead of becoming transparent.
  if (style.dim && css.color === undefined) css.color = "var(--muted)";
  if (style.italic) css.fontStyle = "italic";
  const lines = [style.underline ? "underline" : "", style.strike ? "line-through" : ""].filter(Boolean);
  if (lines.length > 0) css.textDecorationLine = lines.join(" ");
  return css;
}
