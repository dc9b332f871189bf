// Unpacks the Chromium of @sparticuz/chromium beside the packages, once for each install, and tries it.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { CHROMIUM, environment } from "./chromium.mjs";

const folder = dirname(CHROMIUM);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
process.env.TMPDIR = folder; // the package unpacks into the temporary folder, which others may share
const { default: chromium, inflate } = await import("@sparticuz/chromium");
await chromium.executablePath();

const starts = () => execFileSync(CHROMIUM, ["--version"], { env: environment(), stdio: "pipe" }).toString().trim();
try {
  starts();
} catch {
  // A bare machine lacks some libraries of Chromium; the package brings those too.
  await inflate(join(import.meta.dirname, "node_modules/@sparticuz/chromium/bin/al2023.tar.br"));
  starts();
}
