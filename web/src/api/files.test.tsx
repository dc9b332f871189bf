import { act, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { FileMissing, loadFile } from "@/api/files";
import { LiveClient, setLiveClient } from "@/api/live";
import { ErrorBoundary } from "@/components/ErrorBoundary";
import { TooltipProvider } from "@/components/Tooltip";
import { problem, stubServer } from "@/testing/server";

function Broken(): never {
  throw new FileMissing();
}

let reload: ReturnType<typeof vi.spyOn>;
let back: () => void;

beforeEach(() => {
  sessionStorage.clear();
  reload = vi.spyOn(window.location, "reload").mockReturnValue(undefined);
  const client = new LiveClient();
  vi.spyOn(client, "onReconnected").mockImplementation((listener) => {
    back = listener;
    return () => undefined;
  });
  setLiveClient(client);
  vi.spyOn(console, "error").mockReturnValue(undefined);
});

const show = () =>
  render(
    <TooltipProvider>
      <ErrorBoundary>
        <Broken />
      </ErrorBoundary>
    </TooltipProvider>,
  );

it("a part that does not come while the server is away is told of, and loaded when it is back", async () => {
  let away = true;
  const asked = stubServer({ "GET /healthz": () => (away ? problem(502, "away") : { status: "ok" }) });
  show();
  await screen.findByText("This part of the page could not be loaded.");
  await waitFor(() => expect(asked).toHaveLength(1));
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  await waitFor(() => expect(asked).toHaveLength(2));
  expect(reload).not.toHaveBeenCalled();
  away = false;
  act(() => back());
  await waitFor(() => expect(reload).toHaveBeenCalledOnce());
});

it("a part that a server of another version lacks loads the page anew, once", async () => {
  const asked = stubServer({ "GET /healthz": { status: "ok" } });
  show();
  await waitFor(() => expect(reload).toHaveBeenCalledOnce());
  show();
  await screen.findAllByText("This part of the page could not be loaded.");
  act(() => back());
  expect([reload.mock.calls.length, asked.length]).toEqual([1, 1]);
});

it("what failed to load is no module error to the router, which would reload by itself, and is not tried again", async () => {
  const load = vi.fn(() => Promise.reject(new TypeError("Failed to fetch dynamically imported module: /a.js")));
  await expect(loadFile(load)).rejects.toThrow("This part of the page could not be loaded.");
  await expect(loadFile(load)).rejects.toBeInstanceOf(FileMissing);
  expect(load).toHaveBeenCalledOnce();
});
