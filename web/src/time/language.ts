/** The browser's language, made safe: Chromium without a locale says `en-US@posix`, which is no language tag. */

const SAFE = "en-US";

function isTag(language: string): boolean {
  try {
    return Intl.getCanonicalLocales(language).length === 1;
  } catch {
    return false;
  }
}

/** Libraries ask navigator.language and hand it to Intl, which throws at a wrong one: give them one that works. */
export function mendLanguage(browser: Navigator = navigator): void {
  if (isTag(browser.language)) return;
  Object.defineProperty(browser, "language", { configurable: true, value: SAFE });
  Object.defineProperty(browser, "languages", { configurable: true, value: [SAFE] });
}
