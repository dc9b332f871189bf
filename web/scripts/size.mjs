// Fails the build when the first load grows past its limit: all that `/` asks for, with its chart and the font.
import { readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const LIMIT = 250 * 1024;
/** The page, then what it loads when it is opened at `/`. */
const LOADED = ["index.html", "src/pages/overview/OverviewPage.tsx", "src/pages/overview/ActivityChart.tsx"];
const page = fileURLToPath(new URL("../../src/ostinato/api/page/", import.meta.url));
const manifest = JSON.parse(readFileSync(`${page}.vite/manifest.json`, "utf8"));

const files = new Set(["index.html", "theme.js", "icon.svg"]);
const visit = (key) => {
  const chunk = manifest[key];
  if (chunk === undefined) throw new Error(`the build has no ${key}: scripts/size.mjs counts what \`/\` loads`);
  if (files.has(chunk.file)) return;
  files.add(chunk.file);
  for (const other of [...(chunk.css ?? []), ...(chunk.assets ?? [])]) files.add(other);
  for (const other of chunk.imports ?? []) visit(other);
};
for (const key of LOADED) visit(key);
// Only we need it: it does not go into the wheel.
rmSync(`${page}.vite`, { recursive: true });

let sum = 0;
for (const file of files) {
  const size = gzipSync(readFileSync(page + file)).length;
  sum += size;
  console.log(`${(size / 1024).toFixed(1).padStart(7)} KB  ${file}`);
}
console.log(`${(sum / 1024).toFixed(1).padStart(7)} KB  first load, gzip (at most ${LIMIT / 1024} KB)`);
if (sum > LIMIT) {
  console.error("The first load is too large: load what is not needed at once with import().");
  process.exit(1);
}
