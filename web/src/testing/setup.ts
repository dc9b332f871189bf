/** Before every test file: what the browser has and happy-dom lacks, and a clean page after every test. */

import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";
import { forgetDrafts } from "@/state/drafts";

// A busy machine may be slow; a test that waits for nothing fails a little later.
configure({ asyncUtilTimeout: 15_000 });

Element.prototype.scrollIntoView = () => undefined;
Element.prototype.hasPointerCapture = () => false;
window.scrollTo = () => undefined;

afterEach(() => {
  cleanup();
  localStorage.clear();
  forgetDrafts();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
