/** Logins: the browsers that are in, and a way to put one out. */

import { useState } from "react";
import { PREFIX } from "@/api/mount";
import { useEndLogin, useLogins } from "@/api/queries/logins";
import type { Login } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { EmptyState } from "@/components/EmptyState";
import { IconButton } from "@/components/IconButton";
import { QueryView } from "@/components/QueryView";
import { Ago, Countdown } from "@/components/Time";
import { loginCommand } from "@/pages/login/LoginPage";

export function LoginsTab() {
  const logins = useLogins();
  const end = useEndLogin();
  const [ending, setEnding] = useState<Login | null>(null);
  return (
    <Card title="Logins" flush>
      <QueryView query={logins}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState
              icon="logout"
              title="No browser is logged in"
              command={loginCommand(window.location.port, PREFIX)}
            />
          ) : (
            <ul className="divide-y divide-line">
              {items.map((login) => (
                <LoginRow key={login.id} login={login} onEnd={() => setEnding(login)} />
              ))}
            </ul>
          )
        }
      </QueryView>
      <ConfirmDialog
        open={ending !== null}
        onOpenChange={(open) => !open && setEnding(null)}
        title={`Log out a browser of ${ending?.who ?? ""}?`}
        text={ending?.current === true ? "This is the browser you are using. You will have to log in again." : "It will have to log in again."}
        action="Log out browser"
        danger
        onConfirm={async () => {
          if (ending !== null) await end.mutateAsync({ id: ending.id });
        }}
      />
    </Card>
  );
}

function LoginRow({ login, onEnd }: { login: Login; onEnd: () => void }) {
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 text-sm">
      <span className="min-w-0 flex-1 basis-40">
        <span className="mr-2 font-medium break-all">{login.who}</span>
        <Badge tone="accent">{login.role}</Badge>
        {login.current && (
          <span className="ml-2">
            <Badge tone="info">this browser</Badge>
          </span>
        )}
        {login.token !== null && <span className="ml-2 text-xs text-muted">with token {login.token}</span>}
      </span>
      <span className="text-xs text-muted">
        logged in <Ago at={login.created_at} />
      </span>
      <span className="text-xs text-muted">
        {login.used_at === null ? (
          "never used"
        ) : (
          <>
            used <Ago at={login.used_at} />
          </>
        )}
      </span>
      <span className="text-xs text-muted">
        expires <Countdown to={login.expires_at} />
      </span>
      <IconButton icon="logout" label={`Log out login ${login.id} of ${login.who}`} tone="danger" onClick={onEnd} />
    </li>
  );
}
