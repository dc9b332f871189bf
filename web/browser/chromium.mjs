// Where the unpacked Chromium is, and how it is started.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FOLDER = join(import.meta.dirname, "node_modules", ".chromium");
export const CHROMIUM = join(FOLDER, "chromium");

/** The environment of the browser: with the libraries that came with it, if this machine lacked them. */
export function environment() {
  const libraries = join(FOLDER, "al2023", "lib");
  return existsSync(libraries) ? { ...process.env, LD_LIBRARY_PATH: libraries } : process.env;
}

/** As strict as a person's: the package's own arguments would switch web security off. */
export const OPTIONS = {
  executablePath: CHROMIUM,
  env: environment(),
  timeout: 90_000,
  args: [
    "--no-sandbox", // root, and containers without user namespaces, can have none
    "--no-zygote",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
  ],
};

/** The browser that scenarios share, or one of its own where there is none. What a scenario opens in it ends with it. */
export async function openChromium() {
  const shared = process.env.PAGE_BROWSER;
  return shared ? chromium.connect(shared, { timeout: OPTIONS.timeout }) : chromium.launch(OPTIONS);
}
