import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";
import { Palette } from "@/shell/Palette";
import { theme } from "@/state/theme";
import { renderPage } from "@/testing/render";
import { sampleRun } from "@/testing/samples";
import { problem, stubServer } from "@/testing/server";

function Page() {
  const [open, setOpen] = useState(true);
  return (
    <>
      <Palette open={open} onOpenChange={setOpen} onKeys={() => undefined} />
      {!open && <p>closed</p>}
      <button type="button" onClick={() => setOpen(true)}>
        Open
      </button>
    </>
  );
}

const chosen = (): string => screen.getByRole("option", { selected: true }).textContent ?? "";

async function openPalette(answers: Record<string, unknown> = {}) {
  const asked = stubServer({
    ...answers,
    "GET /api/schedules": ({ query }: { query: URLSearchParams }) => ({
      items:
        query.get("q") === "night"
          ? [{ id: 3, name: "nightly backup", sentence: "Daily at 03:00.", broken: null, enabled: true, work: { kind: "shell" } }]
          : [],
      next: null,
      total: 0,
    }),
  });
  const view = renderPage(Page);
  await screen.findByRole("combobox");
  return { ...view, asked };
}

it("the arrows move through all entries and around, and Enter goes there", async () => {
  const { router } = await openPalette();
  expect(chosen()).toContain("Overview");
  await userEvent.keyboard("{ArrowDown}{ArrowDown}");
  expect(chosen()).toContain("Runs");
  await userEvent.keyboard("{ArrowUp}{ArrowUp}{ArrowUp}");
  expect(chosen()).toContain("Log out");
  await userEvent.keyboard("{ArrowDown}{ArrowDown}{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/schedules"));
  expect(screen.queryByRole("combobox")).toBeNull();
});

it("schedules are searched on the server, and a name may hold anything", async () => {
  const { router } = await openPalette();
  await userEvent.keyboard("night");
  await screen.findByRole("option", { name: /nightly backup/ });
  expect(chosen()).toContain("nightly backup");
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/nightly backup"));
});

const schedule = (id: number, name: string, enabled = true) => ({
  id,
  name,
  sentence: "Daily at 03:00.",
  broken: null,
  enabled,
  work: { kind: "shell" },
});

/** The server's own order is that of the names. */
function openWith(...schedules: ReturnType<typeof schedule>[]) {
  const asked = stubServer({
    "GET /api/schedules": ({ query }: { query: URLSearchParams }) => {
      const items = schedules.filter(({ name }) => name.includes(query.get("q") ?? ""));
      return { items: items.slice(0, Number(query.get("limit"))), next: null, total: items.length };
    },
    "GET /api/lanes": { items: [] },
    "POST /api/schedules/backup/trigger": { id: 5 },
  });
  renderPage(Page);
  const posted = () => asked.filter(({ method }) => method === "POST").map(({ path }) => path);
  return { posted };
}

it("the very name comes before names that hold it, and is run without a question", async () => {
  const { posted } = openWith(schedule(1, "archive-backup"), schedule(2, "backup"), schedule(3, "backup-mail"));
  await userEvent.type(await screen.findByRole("combobox"), "run backup");
  await screen.findByRole("option", { name: /Run archive-backup/ });
  const offered = screen.getAllByRole("option", { name: /^Run / }).map((each) => each.textContent);
  expect(offered.map((each) => each?.split("Daily")[0])).toEqual(["Run backup", "Run backup-mail", "Run archive-backup"]);
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(posted()).toEqual(["/api/schedules/backup/trigger"]));
});

it.each(["run", "disable"])("%s asks before it takes a schedule for what was typed in part", async (verb) => {
  const { posted } = openWith(schedule(1, "archive-backup"));
  await userEvent.type(await screen.findByRole("combobox"), `${verb} backup`);
  await screen.findByRole("option", { name: new RegExp(`^${verb} archive-backup`, "i") });
  await userEvent.keyboard("{Enter}");
  await screen.findByRole("dialog", { name: new RegExp(`^${verb} archive-backup\\?$`, "i") });
  await userEvent.click(screen.getByRole("button", { name: "Go back" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(posted()).toEqual([]);
});

it("a verb looks among all that were found, not among the first few", async () => {
  const many = Array.from({ length: 12 }, (_, place) => schedule(place + 1, `backup-${String(place).padStart(2, "0")}`));
  openWith(...many, schedule(99, "backup-off", false));
  await userEvent.type(await screen.findByRole("combobox"), "enable backup");
  expect(await screen.findByRole("option", { name: /Enable backup-off/ })).toBeDefined();
});

it("verbs act on what is named, for those who may", async () => {
  const { asked } = await openPalette();
  await userEvent.keyboard("disable night");
  await screen.findByRole("option", { name: /Disable nightly backup/ });
  expect(chosen()).toContain("Disable nightly backup");
  await userEvent.keyboard("{Enter}");
  await userEvent.click(await screen.findByRole("button", { name: "Disable" }));
  await waitFor(() => expect(asked.map((each) => each.path)).toContain("/api/schedules/nightly%20backup/disable"));
});

it("a cancel leads to the question on the page of the run, while it is active", async () => {
  const { router } = await openPalette({
    "GET /api/runs/7": sampleRun(),
    "GET /api/runs/78": sampleRun({ id: 78, state: "succeeded" }),
  });
  await userEvent.keyboard("cancel 7");
  await screen.findByRole("option", { name: /Cancel run 7/ });
  await userEvent.keyboard("8");
  await waitFor(() => expect(screen.queryByRole("option", { name: /Cancel run/ })).toBeNull());
  await userEvent.keyboard("{Backspace}");
  await screen.findByRole("option", { name: /Cancel run 7/ });
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(router.state.location.href).toBe("/runs/7?cancel=1"));
});

it("letters here and there find a page", async () => {
  const { router } = await openPalette();
  await userEvent.keyboard("tmln{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/timeline"));
});

it("a number leads to the run", async () => {
  const { router } = await openPalette();
  await userEvent.keyboard("#4711{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/runs/4711"));
});

it("an action is done without leaving the page, and Escape leaves everything as it is", async () => {
  const { router } = await openPalette();
  await userEvent.keyboard("theme dark{Enter}");
  await screen.findByText("closed");
  expect(theme.get()).toBe("dark");
  await userEvent.click(screen.getByRole("button", { name: "Open" }));
  await userEvent.type(await screen.findByRole("combobox"), "theme light");
  await userEvent.keyboard("{Escape}");
  await screen.findByText("closed");
  expect([theme.get(), router.state.location.pathname]).toEqual(["dark", "/"]);
  await waitFor(() => expect(document.activeElement).toBe(screen.getByRole("button", { name: "Open" })));
});

it("a log out that fails is told, though the palette is closed", async () => {
  stubServer({ "POST /api/logout": problem(503, "the database is away") });
  renderPage(Page);
  await userEvent.type(await screen.findByRole("combobox"), "log out{Enter}");
  await screen.findByText("closed");
  expect(await screen.findByText("You could not be logged out")).toBeDefined();
  expect(screen.getByText("the database is away")).toBeDefined();
});
