/** Light, dark, or as the system says. public/theme.js does the same before the first paint. */

import { useSyncExternalStore } from "react";
import { stored } from "@/state/stored";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export const theme = stored<Theme>("theme", THEMES, "system");
const system = window.matchMedia("(prefers-color-scheme: dark)");

export function isDark(): boolean {
  return theme.get() === "dark" || (theme.get() === "system" && system.matches);
}

function apply(): void {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
}

/** Keeps the page in step with the choice and with the system. */
export function followTheme(): void {
  apply();
  theme.subscribe(apply);
  system.addEventListener("change", apply);
}

/** Whether the page is dark now; for what is drawn on a canvas. */
export function useIsDark(): boolean {
  return useSyncExternalStore((listener) => {
    const stop = theme.subscribe(listener);
    system.addEventListener("change", listener);
    return () => {
      stop();
      system.removeEventListener("change", listener);
    };
  }, isDark);
}
