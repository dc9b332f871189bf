import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { Command } from "@/components/Command";
import { commandFor, withFlag } from "@/components/shellWord";
import { renderPage } from "@/testing/render";
import { ME, stubServer } from "@/testing/server";

const Page = () => <Command text="ostinato worker" />;
const NOTE = "on the server’s ledger: add its --db";

it("names the ledger that the page shows", async () => {
  stubServer({});
  renderPage(Page);
  expect(await screen.findByText("ostinato worker --db sqlite:////srv/jobs.db")).toBeDefined();
  expect(screen.queryByText(NOTE)).toBeNull();
});

it("names the ledger before the names that begin like a flag, and quotes what a shell would read otherwise", async () => {
  expect(commandFor("schedule trigger", "it's -- mine")).toBe(`ostinato schedule trigger 'it'\\''s -- mine'`);
  expect(withFlag(commandFor("schedule trigger", "it's -- mine"), "--db x")).toMatch(/ mine' --db x$/);
  stubServer({});
  renderPage(() => <Command text={commandFor("schedule trigger", "-x")} />);
  expect(await screen.findByText("ostinato schedule trigger --db sqlite:////srv/jobs.db -- -x")).toBeDefined();
});

it("says what to add where the page is not told the ledger", async () => {
  stubServer({ "GET /api/me": { ...ME, db: null } });
  renderPage(Page);
  expect(await screen.findByText("ostinato worker")).toBeDefined();
  expect(screen.getByText(NOTE)).toBeDefined();
});
