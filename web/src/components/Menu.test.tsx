import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { Menu } from "./Menu";

it("an item that cannot be chosen says why, and the reason is not dimmed", async () => {
  const onSelect = vi.fn();
  const why = "Only an admin may do this; you are a viewer.";
  render(<Menu trigger={<button type="button">More</button>} items={[{ label: "Remove", onSelect, why }]} />);
  screen.getByText("More").focus();
  await userEvent.keyboard("{Enter}");
  const item = await screen.findByRole("menuitem");
  expect(item.getAttribute("aria-disabled")).toBe("true");
  expect(screen.getByText("Remove").className).toContain("opacity-60");
  for (let part: HTMLElement | null = screen.getByText(why); part !== null && part !== item; part = part.parentElement)
    expect(part.className).not.toContain("opacity");
  expect(item.className).not.toContain("opacity");
});
