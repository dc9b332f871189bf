import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { type ComponentProps, useState } from "react";
import { beforeEach, expect, it, vi } from "vitest";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { TooltipProvider } from "@/components/Tooltip";

const confirm = vi.fn();
beforeEach(() => confirm.mockReset());

function Asking(props: Partial<ComponentProps<typeof ConfirmDialog>>) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Ask
      </button>
      <ConfirmDialog open={open} onOpenChange={setOpen} title="Sure?" action="Do it" onConfirm={confirm} {...props} />
    </>
  );
}

async function pressEnterIn(props: Partial<ComponentProps<typeof ConfirmDialog>>): Promise<void> {
  render(<Asking {...props} />, { wrapper: TooltipProvider });
  await userEvent.click(screen.getByText("Ask"));
  await screen.findByRole("dialog");
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
}

it("Enter does what is asked, where there is nothing to fill in", async () => {
  await pressEnterIn({});
  expect(confirm).toHaveBeenCalledOnce();
});

it("Enter does not destroy anything", async () => {
  await pressEnterIn({ danger: true });
  expect(confirm).not.toHaveBeenCalled();
});

it("a field has the focus before the button, and Enter in it does what is asked", async () => {
  render(
    <Asking>
      <input aria-label="Reason" />
    </Asking>,
    { wrapper: TooltipProvider },
  );
  await userEvent.click(screen.getByText("Ask"));
  const field = await screen.findByLabelText("Reason");
  expect(document.activeElement).toBe(field);
  await userEvent.keyboard("late{Enter}");
  await waitFor(() => expect(confirm).toHaveBeenCalledOnce());
});
