// Fails the build when the first load (the entry's scripts and styles, and what they import at once) grows past its limit.
import { readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const LIMIT = 250 * 1024;
const page = fileURLToPath(new URL("../../src/ostinato/api/page/", import.meta.url));
const manifest = JSON.parse(readFileSync(`${page}.vite/manifest.json`, "utf8"));

const files = new Set();
const visit = (key) => {
  const chunk = manifest[key];
  if (files.has(chunk.file)) return;
  files.add(chunk.file);
  for (const style of chunk.css ?? []) files.add(style);
  for (const other of chunk.imports ?? []) visit(other);
};
visit("index.html");
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
