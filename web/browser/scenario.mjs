// What every scenario shares: a browser, a page that tells of every error, and the test that holds the server.
//
// A scenario is a program that tests/browser starts: it finds the server in its environment, asks the test by lines on
// stdout (`@ask`) for what only the test can do, and its exit code is the verdict.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { openChromium } from "./chromium.mjs";

export const BASE = process.env.PAGE_URL;
const LINK = process.env.PAGE_LOGIN;
const FOLDER = process.env.PAGE_ARTIFACTS;
const PATIENCE = 60_000;

/** Play one scenario, and end the process with its verdict. `options` are those of a Playwright context. */
export async function scenario(play, options = {}) {
  const browser = await openChromium();
  const told = [];
  let page;
  let failure = null;
  try {
    const context = await browser.newContext({
      baseURL: BASE,
      viewport: { width: 1280, height: 900 },
      timezoneId: "UTC",
      locale: "en-GB",
      reducedMotion: "reduce",
      ...options,
    });
    context.setDefaultTimeout(PATIENCE);
    page = await context.newPage();
    const faults = listen(page, told);
    await play({ page, context, ...verbs(page), forgive: faults.forgive });
    faults.check();
  } catch (error) {
    failure = error;
    await page?.screenshot({ path: join(FOLDER, "failure.png") }).catch((cause) => told.push(`no screenshot: ${cause}`));
    await page?.content().then((html) => writeFileSync(join(FOLDER, "failure.html"), html), () => undefined);
  }
  writeFileSync(join(FOLDER, "console.txt"), told.join("\n"));
  await browser.close();
  if (failure) console.error(`at ${page?.url()}\n${failure.stack}\n\nthe page's console:\n${told.slice(-40).join("\n")}`);
  process.exit(failure ? 1 : 0);
}

/** Collects what a person would never see: errors of the page, refusals by its policy, answers of 500 and more. */
function listen(page, told) {
  const faults = [];
  const forgiven = [];
  const fault = (text) => {
    told.push(text);
    faults.push(text);
  };
  page.on("console", (message) => {
    const text = `${message.type()}: ${message.text()}`;
    // Chromium writes a line for every answer of 400 and more, also where it is the answer that was asked for.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) fault(text);
    else told.push(text);
  });
  page.on("pageerror", (error) => fault(`uncaught: ${error.stack}`));
  page.on("response", (response) => {
    if (response.status() >= 500) fault(`${response.status()}: ${response.request().method()} ${response.url()}`);
    if (response.status() >= 400) told.push(`${response.status()}: ${response.request().method()} ${response.url()}`);
  });
  return {
    /** Errors that match are part of the scenario, such as those of a server that was stopped. */
    forgive: (pattern) => forgiven.push(pattern),
    check: () => {
      const left = faults.filter((text) => !forgiven.some((pattern) => pattern.test(text)));
      if (left.length) throw new Error(`the page had errors:\n${left.join("\n")}`);
    },
  };
}

function verbs(page) {
  return {
    /** Open the login link, as it was printed by the server. */
    logIn: async (link = LINK) => {
      await page.goto(link);
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    },
    /** One `ostinato …` in the folder of the server; gives what it printed. */
    cli: (...argv) => ask("cli", ...argv),
    /** A file in that folder, which a command of the scenario waits for. */
    touch: (name) => ask("touch", name),
    stopServer: () => ask("stop"),
    startServer: () => ask("start"),
  };
}

/** Wait until it holds; `what` is for whoever reads the failure. */
export async function eventually(what, holds, timeout = PATIENCE) {
  const deadline = Date.now() + timeout;
  let last;
  do {
    last = await holds();
    if (last) return last;
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (Date.now() < deadline);
  throw new Error(`not within ${timeout / 1000} s: ${what} (the last answer was ${JSON.stringify(last)})`);
}

export function expect(condition, what) {
  if (!condition) throw new Error(`this does not hold: ${what}`);
}

const answers = createInterface({ input: process.stdin });
const waiting = [];
answers.on("line", (line) => {
  const { answer, error } = JSON.parse(line);
  const { resolve, reject } = waiting.shift();
  if (error === undefined) resolve(answer);
  else reject(new Error(error));
});

function ask(what, ...argv) {
  console.log(`@ask ${JSON.stringify([what, ...argv])}`);
  return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
}
