import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";
import { Palette } from "@/shell/Palette";
import { theme } from "@/state/theme";
import { renderPage } from "@/testing/render";
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

async function openPalette() {
  const asked = stubServer({
    "GET /api/schedules": ({ query }: { query: URLSearchParams }) => ({
      items:
        query.get("q") === "night"
          ? [{ id: 3, name: "nightly backup", sentence: "Daily at 03:00.", broken: null }]
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
