/** Draws a page as the real one would: with its cache, router, tooltips and toasts. */

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  Outlet,
  RouterProvider,
} from "@tanstack/react-router";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { ToastProvider } from "@/components/Toast";
import { TooltipProvider } from "@/components/Tooltip";
import { parseSearch, stringifySearch } from "@/search";

interface Options {
  /** The pattern of the page's address, such as "/schedules/$name". */
  route?: string;
  /** The address to open. */
  at?: string;
}

/** Other addresses than the page's show nothing; `router.state.location` tells where a click led. */
export function renderPage(Page: () => ReactNode, { route = "/", at = route }: Options = {}) {
  const cache = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const root = createRootRoute({ component: Outlet });
  const page = createRoute({ getParentRoute: () => root, path: route, component: Page });
  const elsewhere = createRoute({ getParentRoute: () => root, path: "$", component: () => null });
  const router = createRouter({
    routeTree: root.addChildren([page, elsewhere]),
    history: createMemoryHistory({ initialEntries: [at] }),
    parseSearch,
    stringifySearch,
  });
  const view = render(
    <QueryClientProvider client={cache}>
      <TooltipProvider>
        <ToastProvider>
          <RouterProvider router={router} />
        </ToastProvider>
      </TooltipProvider>
    </QueryClientProvider>,
  );
  return { ...view, router, cache };
}
