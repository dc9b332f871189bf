import type { QueryClient } from "@tanstack/react-query";
import type { AnyRouter } from "@tanstack/react-router";
import { reloadPageOnce } from "@/api/files";
import { hasHostLogin } from "@/api/mount";

/** What to do when the login has ended: go to the login page, and come back after it.
 *
 *  Where the app around the page logs people in, the page is loaded anew: the server leads to that login.
 *  A form with unsaved changes asks first. Whoever stays there is asked again when they save, not by every list that is
 *  loaded anew behind the form. */
export function toLogin(router: AnyRouter, cache: QueryClient): (asked: Request) => void {
  let askedAt: string | null = null;
  return (asked) => {
    if (hasHostLogin()) {
      void reloadPageOnce();
      return;
    }
    const { pathname, href } = router.state.location;
    if (pathname === "/login" || (asked.method === "GET" && href === askedAt)) return;
    askedAt = href;
    // Done once the page is left, to wherever. What is loaded is not forgotten before: the form stands on it.
    void router.navigate({ to: "/login", search: href === "/" ? {} : { then: href }, replace: true }).then(() => {
      askedAt = null;
      if (router.state.location.pathname === "/login") cache.clear();
    });
  };
}
