// What axe finds on a page: the rules of WCAG 2.2 up to AA and good practice, each with the elements that break it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect } from "./scenario.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** In all of the page, or in one part of it. */
export async function axeFindsNothing(page, where, part = null) {
  // Run by the debugger: the page's own policy takes no foreign scripts.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(
    ([rules, part]) => window.axe.run(part ?? document, { runOnly: rules }),
    [RULES, part],
  );
  const told = violations.map(({ id, help, nodes }) => [`${id}: ${help}`, ...nodes.slice(0, 3).map(elementOf)].join("\n"));
  expect(violations.length === 0, `axe finds nothing on ${where}, but\n${told.join("\n")}`);
}

const elementOf = ({ html, failureSummary }) => `  ${html.slice(0, 240)}\n  ${failureSummary.replaceAll("\n", " ")}`;
