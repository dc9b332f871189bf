import { render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { LiveClient, setLiveClient } from "@/api/live";
import { lazyDialog } from "@/components/lazyDialog";
import { renderPage } from "@/testing/render";
import { stubServer } from "@/testing/server";

const Question = ({ open }: { open: boolean }) => (open ? <p>Really?</p> : <p>closed</p>);

it("loads its file when it is first opened, once, and stays after it is closed", async () => {
  const load = vi.fn(async () => Question);
  const Lazy = lazyDialog(load);
  const { rerender } = render(<Lazy open={false} />);
  expect(load).not.toHaveBeenCalled();
  rerender(<Lazy open />);
  expect(await screen.findByText("Really?")).toBeTruthy();
  rerender(<Lazy open={false} />);
  expect(screen.getByText("closed")).toBeTruthy();
  rerender(<Lazy open />);
  expect(load).toHaveBeenCalledOnce();
});

it("says in its place that the file did not come", async () => {
  vi.spyOn(console, "error").mockReturnValue(undefined);
  stubServer({});
  setLiveClient(new LiveClient());
  const Lazy = lazyDialog<{ open: boolean }>(() => Promise.reject(new TypeError("failed to fetch")));
  renderPage(() => <Lazy open />);
  expect(await screen.findByText("This part of the page could not be loaded.")).toBeTruthy();
});
