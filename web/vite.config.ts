import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const server = "http://127.0.0.1:8321";

/** Styles are not looked through for licences: the font's is put beside those of the code. */
const fontLicence: Plugin = {
  name: "font-licence",
  generateBundle() {
    const source = readFileSync(here("./node_modules/@fontsource-variable/inter/LICENSE"));
    this.emitFile({ type: "asset", fileName: "licenses-inter.txt", source });
  },
};

export default defineConfig({
  // Relative: the server puts the place where it is mounted into index.html.
  base: "./",
  plugins: [react(), tailwindcss(), fontLicence],
  resolve: {
    alias: {
      "@": here("./src"),
      // The real one injects a <style> element, which the server's Content-Security-Policy forbids.
      "react-remove-scroll": here("./src/components/scrollLock.tsx"),
    },
  },
  build: {
    outDir: here("../src/ostinato/api/page"),
    emptyOutDir: true,
    // Fonts as data: URLs are forbidden by the policy too, so nothing is inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    // Whose code and font the page carries.
    license: { fileName: "licenses.md" },
    chunkSizeWarningLimit: 600,
    // What most pages need is one file: fewer to ask for, and smaller together.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "frame", minShareCount: 8 }] } } },
  },
  server: {
    proxy: {
      "/api": { target: server, ws: true },
      "/healthz": { target: server },
    },
  },
  test: {
    environment: "happy-dom",
    environmentOptions: { happyDOM: { url: "http://ostinato.test/" } },
    pool: "vmThreads",
    setupFiles: ["./src/testing/setup.ts"],
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    testTimeout: 60_000,
  },
});
