import { QueryClient, QueryClientProvider, useInfiniteQuery } from "@tanstack/react-query";
import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { endOf } from "@/components/rowsEnd";
import { TooltipProvider } from "@/components/Tooltip";
import { VirtualRows } from "@/components/VirtualRows";

beforeEach(() => {
  // happy-dom lays nothing out: the window and the rows have a height all the same.
  vi.spyOn(window, "innerHeight", "get").mockReturnValue(800);
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(44);
});

type Load = (page: number) => Promise<{ items: string[]; next: number | null }>;

/** A list of pages, the first of which is 0; `total` is how many rows there are, if that is known. */
function renderRows(load: Load, total?: number): void {
  function Rows() {
    const query = useInfiniteQuery({
      queryKey: ["rows"],
      queryFn: ({ pageParam }) => load(pageParam),
      initialPageParam: 0,
      getNextPageParam: (last) => last.next,
      retry: false,
    });
    const items = query.data?.pages.flatMap((page) => page.items) ?? [];
    const missing = total === undefined ? undefined : total - items.length;
    const end = endOf(query);
    return (
      <VirtualRows label="Rows" items={items} missing={missing} rowKey={(item) => item} row={(item) => item} {...end} />
    );
  }
  render(
    <QueryClientProvider client={new QueryClient()}>
      <TooltipProvider>
        <Rows />
      </TooltipProvider>
    </QueryClientProvider>,
  );
}

it("what is not here keeps its place, and is asked for until what is in sight is here", async () => {
  const load = vi.fn(async (page: number) => {
    const items = Array.from({ length: 5 }, (_, place) => `row ${page * 5 + place}`);
    return { items, next: page < 199 ? page + 1 : null };
  });
  renderRows(load, 1000);
  const shown = await screen.findByText("row 18");
  expect(shown.getAttribute("aria-setsize")).toBe("1000");
  expect(Number.parseInt(screen.getByRole("list").style.height, 10)).toBeGreaterThan(1000 * 40);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(load.mock.calls.length).toBeLessThan(12);
});

it("a next page that fails is asked for once, says why, and comes when it is asked for again", async () => {
  let broken = true;
  const load = vi.fn(async (page: number) => {
    if (page > 0 && broken) throw new Error("the disk is full");
    return { items: [`row ${page}`], next: page < 1 ? page + 1 : null };
  });
  renderRows(load);
  await screen.findByText("the disk is full");
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(load.mock.calls).toEqual([[0], [1]]);
  broken = false;
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  await screen.findByText("row 1");
  await waitFor(() => expect(screen.queryByText("the disk is full")).toBeNull());
});
