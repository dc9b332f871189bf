/** The addresses of the page. Every page but the frame is loaded when it is first needed. */

import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet } from "@tanstack/react-router";
import { loadFile } from "@/api/files";
import { PREFIX } from "@/api/mount";
import { SkeletonRows } from "@/components/Skeleton";
import { NotFoundPage } from "@/pages/NotFoundPage";
import { parseSearch, stringifySearch } from "@/search";
import { AppShell } from "@/shell/AppShell";

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFoundPage });

const app = createRoute({ getParentRoute: () => root, id: "app", component: AppShell });

/** A page of its own file; hovering a link to it loads it already. */
const lazy = <M extends Record<string, unknown>>(
  load: () => Promise<M>,
  name: keyof M & string,
): ReturnType<typeof lazyRouteComponent> => lazyRouteComponent(() => loadFile(load), name);

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  component: lazy(() => import("@/pages/login/LoginPage"), "LoginPage"),
});

const page = <P extends string>(path: P, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => app, path, component });

const form = lazy(() => import("@/pages/form/ScheduleFormPage"), "ScheduleFormPage");

const pages = [
  page(
    "/",
    lazy(() => import("@/pages/overview/OverviewPage"), "OverviewPage"),
  ),
  page(
    "/schedules",
    lazy(() => import("@/pages/schedules/SchedulesPage"), "SchedulesPage"),
  ),
  page("/schedules/new", form),
  page("/schedules/$name/edit", form),
  page(
    "/schedules/$name",
    lazy(() => import("@/pages/schedule/SchedulePage"), "SchedulePage"),
  ),
  page(
    "/runs",
    lazy(() => import("@/pages/runs/RunsPage"), "RunsPage"),
  ),
  page(
    "/runs/$id",
    lazy(() => import("@/pages/run/RunPage"), "RunPage"),
  ),
  page(
    "/incidents",
    lazy(() => import("@/pages/incidents/IncidentsPage"), "IncidentsPage"),
  ),
  page(
    "/timeline",
    lazy(() => import("@/pages/timeline/TimelinePage"), "TimelinePage"),
  ),
  page(
    "/calendars",
    lazy(() => import("@/pages/calendars/CalendarsPage"), "CalendarsPage"),
  ),
  page(
    "/lanes",
    lazy(() => import("@/pages/lanes/LanesPage"), "LanesPage"),
  ),
  page(
    "/sessions",
    lazy(() => import("@/pages/sessions/SessionsPage"), "SessionsPage"),
  ),
  page(
    "/sessions/$key",
    lazy(() => import("@/pages/sessions/SessionPage"), "SessionPage"),
  ),
  page(
    "/nodes",
    lazy(() => import("@/pages/nodes/NodesPage"), "NodesPage"),
  ),
  page(
    "/settings",
    lazy(() => import("@/pages/settings/SettingsPage"), "SettingsPage"),
  ),
  createRoute({ getParentRoute: () => app, path: "$", component: NotFoundPage }),
];

export const router = createRouter({
  basepath: PREFIX === "" ? "/" : PREFIX,
  routeTree: root.addChildren([login, app.addChildren(pages)]),
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  defaultPendingComponent: () => <SkeletonRows rows={6} />,
  defaultNotFoundComponent: NotFoundPage,
  scrollRestoration: true,
});
