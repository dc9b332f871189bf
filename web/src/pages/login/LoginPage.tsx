/** The way in: a link with a code that works once, or a token. */

import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { PREFIX } from "@/api/mount";
import { whenLoggedInElsewhere } from "@/api/originKey";
import { useLogin } from "@/api/queries/me";
import { Button } from "@/components/Button";
import { TextField } from "@/components/Field";
import { ProblemNote } from "@/components/ProblemNote";
import { Logo } from "@/shell/Logo";

/** Only places of this page: an address from elsewhere must not lead away after the login. */
export const safePlace = (then: string | undefined): string =>
  then !== undefined && /^\/(?![/\\])/.test(then) && !then.startsWith("/login") ? then : "/";

const USUAL_PORT = "8321";

/** The port and the place in another app are what the command cannot know by itself, where they are not the usual ones. */
export const loginCommand = (port: string, prefix = ""): string =>
  [
    "ostinato login",
    ...(port === "" || port === USUAL_PORT ? [] : [`--port ${port}`]),
    ...(prefix === "" ? [] : [`--prefix ${prefix}`]),
  ].join(" ");

export function LoginPage() {
  const search: { code?: string; then?: string } = useSearch({ strict: false });
  const navigate = useNavigate();
  const login = useLogin();
  const [token, setToken] = useState("");
  const used = useRef<string | null>(null);
  const place = useRef(safePlace(search.then));
  const { mutateAsync } = login;

  useEffect(() => {
    document.title = "Log in · Ostinato";
  }, []);
  useEffect(() => {
    const code = search.code;
    if (code === undefined || used.current === code) return;
    used.current = code;
    // At once: the code shall not stay in the address, nor in the history.
    void navigate({ to: "/login", search: {}, replace: true });
    mutateAsync({ code }).then(
      () => navigate({ to: place.current, replace: true }),
      () => undefined,
    );
  }, [search.code, navigate, mutateAsync]);

  useEffect(
    () => whenLoggedInElsewhere(() => void navigate({ to: place.current, replace: true })),
    [navigate],
  );

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    mutateAsync({ token: token.trim() }).then(
      () => navigate({ to: place.current, replace: true }),
      () => undefined,
    );
  };

  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center gap-6 px-5 py-10">
      <div className="text-lg">
        <Logo />
      </div>
      <form onSubmit={submit} className="flex flex-col gap-4 rounded-xl border border-line bg-surface p-5">
        <h1 className="text-base font-semibold">Log in</h1>
        {login.error !== null && <ProblemNote error={login.error} />}
        <TextField
          label="Token"
          type="password"
          autoComplete="current-password"
          spellCheck={false}
          placeholder="ost_…"
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        <Button type="submit" variant="primary" busy={login.isPending}>
          Log in
        </Button>
        <div className="flex flex-col gap-2 border-t border-line pt-4 text-sm text-muted">
          {/* Which ledger this is a stranger is not told, and a command without it would make another one. */}
          <span>
            Or open a login link. The server prints one when it starts, or the command that makes one:{" "}
            <code className="font-mono text-xs">{loginCommand(window.location.port, PREFIX)}</code>, with the{" "}
            <code className="font-mono text-xs">--db</code> or <code className="font-mono text-xs">--app</code> of this
            server.
          </span>
        </div>
      </form>
    </main>
  );
}
