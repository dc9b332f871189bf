/** Puts the page together and starts it. */

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { isPassing, ProblemError, whenLoggedOut } from "@/api/client";
import { LiveClient, live, setLiveClient } from "@/api/live";
import { whenLoggedInElsewhere } from "@/api/originKey";
import { fetchMe } from "@/api/queries/me";
import { ToastProvider } from "@/components/Toast";
import { TooltipProvider } from "@/components/Tooltip";
import { router } from "@/router";
import { followTheme } from "@/state/theme";
import { toLogin } from "@/state/toLogin";
import { mendLanguage } from "@/time/language";
import "@/styles/main.css";

const cache = new QueryClient({
  defaultOptions: {
    // "always": a server on this machine answers also when the browser says that it is offline.
    queries: {
      networkMode: "always",
      staleTime: 2_000,
      retry: (failures, error) => failures < 2 && isPassing(error),
    },
    mutations: { networkMode: "always" },
  },
});

whenLoggedOut(toLogin(router, cache));
// A page that stayed where it was, with a form that is not saved, goes on.
whenLoggedInElsewhere(() => {
  if (router.state.location.pathname !== "/login") live().start();
});

setLiveClient(
  new LiveClient({
    loadsWait: true,
    mayReconnect: () =>
      fetchMe().then(
        () => true,
        (error: unknown) => !(error instanceof ProblemError && error.status === 401),
      ),
  }),
);

mendLanguage();
followTheme();

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={cache}>
      <TooltipProvider>
        <ToastProvider>
          <RouterProvider router={router} />
        </ToastProvider>
      </TooltipProvider>
    </QueryClientProvider>
  </StrictMode>,
);
