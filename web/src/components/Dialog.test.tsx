import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { type ReactNode, useState } from "react";
import { expect, it } from "vitest";
import { Dialog } from "@/components/Dialog";
import { Menu } from "@/components/Menu";

function House({ opener, steady = false }: { opener: (open: () => void, isOpen: boolean) => ReactNode; steady?: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <main id="main" tabIndex={-1}>
      {opener(() => setOpen(true), open)}
      <Dialog open={open} onOpenChange={setOpen} title="Question" steady={steady}>
        <input autoFocus aria-label="Answer" />
        <button type="button" onClick={() => setOpen(false)}>
          Done
        </button>
      </Dialog>
    </main>
  );
}

const button = (open: () => void) => (
  <button type="button" onClick={open}>
    Ask
  </button>
);

it("the focus goes back to the button that opened it", async () => {
  render(<House opener={button} />);
  await userEvent.click(screen.getByRole("button", { name: "Ask" }));
  expect(document.activeElement).toBe(await screen.findByLabelText("Answer"));
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(document.activeElement).toBe(screen.getByRole("button", { name: "Ask" })));
});

it("opened from a menu, which is gone then, the focus goes back to the button of the menu", async () => {
  const menu = (open: () => void) => (
    <Menu trigger={<button type="button">More</button>} items={[{ label: "Ask", onSelect: open }]} />
  );
  render(<House opener={menu} />);
  await userEvent.click(screen.getByRole("button", { name: "More" }));
  await userEvent.click(await screen.findByRole("menuitem", { name: "Ask" }));
  await screen.findByLabelText("Answer");
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(document.activeElement).toBe(screen.getByRole("button", { name: "More" })));
});

it("when what opened it is gone, the focus goes to the page and not out of it", async () => {
  render(<House opener={(open, isOpen) => !isOpen && button(open)} />);
  await userEvent.click(screen.getByRole("button", { name: "Ask" }));
  await screen.findByLabelText("Answer");
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(document.activeElement).toBe(screen.getByRole("main")));
});

it("what took the focus while it closed keeps it", async () => {
  const withField = (open: () => void) => (
    <>
      {button(open)}
      <input aria-label="Name" />
    </>
  );
  render(<House opener={withField} />);
  const field = screen.getByLabelText("Name");
  await userEvent.click(screen.getByRole("button", { name: "Ask" }));
  fireEvent.click(await screen.findByText("Done"));
  field.focus();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(document.activeElement).toBe(field);
});

it("a steady one is closed by a button only", async () => {
  render(<House opener={button} steady />);
  await userEvent.click(screen.getByRole("button", { name: "Ask" }));
  await screen.findByLabelText("Answer");
  await userEvent.keyboard("{Escape}");
  expect(screen.getByRole("dialog")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Done" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});
