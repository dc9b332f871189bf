/** The frame around every page: navigation, header, stale bar, palette and keys. Nothing of it shows before the login. */

import { useQueryClient } from "@tanstack/react-query";
import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, lazy, useEffect, useState } from "react";
import { Feed } from "@/api/feed";
import { loadFile } from "@/api/files";
import { live } from "@/api/live";
import { useMay, useMe } from "@/api/queries/me";
import { ErrorBoundary } from "@/components/ErrorBoundary";
import { ProblemNote } from "@/components/ProblemNote";
import { SkeletonRows } from "@/components/Skeleton";
import { BottomBar } from "@/shell/BottomBar";
import { Header } from "@/shell/Header";
import { PLACES } from "@/shell/navigation";
import { Sidebar } from "@/shell/Sidebar";
import { StaleBar } from "@/shell/StaleBar";
import { listenForKeys, useShortcut } from "@/state/shortcuts";

const loadPalette = () => loadFile(() => import("@/shell/Palette"));
const Palette = lazy(async () => ({ default: (await loadPalette()).Palette }));
const loadKeys = () => loadFile(() => import("@/shell/KeysDialog"));
const KeysDialog = lazy(async () => ({ default: (await loadKeys()).KeysDialog }));

export function AppShell() {
  const me = useMe();
  const cache = useQueryClient();
  const loggedIn = me.data !== undefined;
  // Of the page that is drawn: the address is another before its page is there, and a fault would only come again.
  const path = useRouterState({ select: (state) => state.matches.at(-1)?.pathname });
  const [over, setOver] = useState<"palette" | "keys" | null>(null);

  useEffect(() => {
    if (!loggedIn) return undefined;
    const client = live();
    const stop = new Feed(cache).follow(client);
    client.start();
    return () => {
      stop();
      client.stop();
    };
  }, [loggedIn, cache]);
  // Not with the first load, and there when it is asked for.
  useEffect(() => {
    if (loggedIn) void Promise.all([loadPalette(), loadKeys()]).catch(() => undefined);
  }, [loggedIn]);
  const [hasOver, setHasOver] = useState(false);
  useEffect(() => setHasOver((before) => before || over !== null), [over]);
  useEffect(listenForKeys, []);
  useShortcut("mod+k", () => setOver((now) => (now === "palette" ? null : "palette")), {
    label: "Search and commands",
    group: "Everywhere",
    always: true,
  });
  useShortcut("?", () => setOver("keys"), { label: "Show shortcuts", group: "Everywhere" });

  return (
    <div className="min-h-dvh md:pl-52">
      <a
        href="#main"
        className="fixed top-2 left-2 z-60 -translate-y-16 rounded-md bg-accent px-3 py-1.5 text-sm text-accent-ink focus:translate-y-0"
      >
        Skip to content
      </a>
      <GoKeys />
      <Sidebar />
      <div className="flex min-h-dvh min-w-0 flex-col">
        <Header onSearch={() => setOver("palette")} onKeys={() => setOver("keys")} />
        <StaleBar />
        <main
          id="main"
          tabIndex={-1}
          className="mx-auto w-full max-w-[1400px] min-w-0 flex-1 px-4 pt-5 pb-[calc(6rem+env(safe-area-inset-bottom))] focus:outline-none md:px-6 md:pb-10"
        >
          {loggedIn ? (
            <ErrorBoundary resetKey={path}>
              <Outlet />
            </ErrorBoundary>
          ) : me.error !== null ? (
            <ProblemNote error={me.error} onRetry={() => void me.refetch()} />
          ) : (
            <SkeletonRows rows={6} />
          )}
        </main>
      </div>
      <BottomBar />
      {hasOver && (
        <Suspense fallback={null}>
          <Palette
            open={over === "palette"}
            onOpenChange={(open) => setOver(open ? "palette" : null)}
            onKeys={() => setOver("keys")}
          />
          <KeysDialog open={over === "keys"} onOpenChange={(open) => setOver(open ? "keys" : null)} />
        </Suspense>
      )}
    </div>
  );
}

function GoKeys() {
  const navigate = useNavigate();
  const { allowed } = useMay("operator");
  useShortcut("n", () => void navigate({ to: "/schedules/new" }), {
    label: "New schedule",
    group: "Everywhere",
    enabled: allowed,
  });
  return PLACES.map((place) => <GoKey key={place.to} keys={place.keys} label={place.label} to={place.to} />);
}

function GoKey({ keys, label, to }: { keys: string; label: string; to: string }) {
  const navigate = useNavigate();
  useShortcut(keys, () => void navigate({ to }), { label, group: "Go to" });
  return null;
}
