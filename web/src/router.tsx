/** The addresses of the page. Every page but the frame is loaded when it is first needed. */

import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet } from "@tanstack/react-router";
import { SkeletonRows } from "@/components/Skeleton";
import { LoginPage } from "@/pages/login/LoginPage";
import { NotFoundPage } from "@/pages/NotFoundPage";
import { parseSearch, stringifySearch } from "@/search";
import { AppShell } from "@/shell/AppShell";

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFoundPage });

const login = createRoute({ getParentRoute: () => root, path: "/login", component: LoginPage });

const app = createRoute({ getParentRoute: () => root, id: "app", component: AppShell });

const page = <P extends string>(path: P, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => app, path, component });

const form = lazyRouteComponent(() => import("@/pages/form/ScheduleFormPage"), "ScheduleFormPage");

const pages = [
  page(
    "/",
    lazyRouteComponent(() => import("@/pages/overview/OverviewPage"), "OverviewPage"),
  ),
  page(
    "/schedules",
    lazyRouteComponent(() => import("@/pages/schedules/SchedulesPage"), "SchedulesPage"),
  ),
  page("/schedules/new", form),
  page("/schedules/$name/edit", form),
  page(
    "/schedules/$name",
    lazyRouteComponent(() => import("@/pages/schedule/SchedulePage"), "SchedulePage"),
  ),
  page(
    "/runs",
    lazyRouteComponent(() => import("@/pages/runs/RunsPage"), "RunsPage"),
  ),
  page(
    "/runs/$id",
    lazyRouteComponent(() => import("@/pages/run/RunPage"), "RunPage"),
  ),
  page(
    "/timeline",
    lazyRouteComponent(() => import("@/pages/timeline/TimelinePage"), "TimelinePage"),
  ),
  page(
    "/lanes",
    lazyRouteComponent(() => import("@/pages/lanes/LanesPage"), "LanesPage"),
  ),
  page(
    "/sessions",
    lazyRouteComponent(() => import("@/pages/sessions/SessionsPage"), "SessionsPage"),
  ),
  page(
    "/sessions/$key",
    lazyRouteComponent(() => import("@/pages/sessions/SessionPage"), "SessionPage"),
  ),
  page(
    "/nodes",
    lazyRouteComponent(() => import("@/pages/nodes/NodesPage"), "NodesPage"),
  ),
  page(
    "/settings",
    lazyRouteComponent(() => import("@/pages/settings/SettingsPage"), "SettingsPage"),
  ),
  createRoute({ getParentRoute: () => app, path: "$", component: NotFoundPage }),
];

export const router = createRouter({
  routeTree: root.addChildren([login, app.addChildren(pages)]),
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  defaultPendingComponent: () => <SkeletonRows rows={6} />,
  defaultNotFoundComponent: NotFoundPage,
  scrollRestoration: true,
});
