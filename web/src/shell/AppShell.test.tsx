import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { renderPage } from "@/testing/render";
import { ME, stubServer } from "@/testing/server";
import { AppShell } from "./AppShell";

it("loads the list of keys when it is asked for, and closes it", async () => {
  stubServer({ "GET /api/me": ME });
  renderPage(AppShell);
  const user = userEvent.setup();
  await screen.findAllByRole("navigation");
  await user.keyboard("?");
  await screen.findByRole("dialog", { name: "Keyboard shortcuts" });
  await user.keyboard("{Escape}");
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});
