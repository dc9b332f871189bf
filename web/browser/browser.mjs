// The browser that scenarios share: it prints where it is reached, and ends with its standard input.
import { chromium } from "playwright-core";
import { OPTIONS } from "./chromium.mjs";

const server = await chromium.launchServer(OPTIONS);
console.log(server.wsEndpoint());
process.stdin.resume();
process.stdin.once("close", async () => {
  await server.close();
  process.exit(0);
});
