/** Tokens: what scripts and other machines log in with. */

import { useState } from "react";
import { useRemoveToken, useTokens } from "@/api/queries/tokens";
import type { Token } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { EmptyState } from "@/components/EmptyState";
import { IconButton } from "@/components/IconButton";
import { QueryView } from "@/components/QueryView";
import { Ago, Countdown } from "@/components/Time";
import { NewTokenDialog } from "@/pages/settings/NewTokenDialog";
import { useNow } from "@/state/ticker";

export function TokensTab() {
  const tokens = useTokens();
  const remove = useRemoveToken();
  const [making, setMaking] = useState(false);
  const [removing, setRemoving] = useState<Token | null>(null);
  return (
    <Card
      title="Tokens"
      actions={
        <Button size="small" variant="primary" icon="plus" onClick={() => setMaking(true)}>
          New token
        </Button>
      }
      flush
    >
      <QueryView query={tokens}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState
              icon="key"
              title="No tokens yet"
              text="A token lets a script use the API: Authorization: Bearer ost_…"
              command="ostinato token add ci --role operator"
            />
          ) : (
            <ul className="divide-y divide-line">
              {items.map((token) => (
                <TokenRow key={token.id} token={token} onRemove={() => setRemoving(token)} />
              ))}
            </ul>
          )
        }
      </QueryView>
      <NewTokenDialog open={making} onOpenChange={setMaking} />
      <ConfirmDialog
        open={removing !== null}
        onOpenChange={(open) => !open && setRemoving(null)}
        title={`Remove token ${removing?.name ?? ""}?`}
        text="Everything that uses this token will be refused from now on."
        action="Remove token"
        danger
        onConfirm={async () => {
          if (removing !== null) await remove.mutateAsync({ id: removing.id });
        }}
      />
    </Card>
  );
}

function TokenRow({ token, onRemove }: { token: Token; onRemove: () => void }) {
  const now = useNow(60_000);
  const expired = token.expires_at !== null && Date.parse(token.expires_at) <= now;
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 text-sm">
      <span className="min-w-0 flex-1 basis-40">
        <span className="mr-2 font-medium break-all">{token.name}</span>
        <Badge tone="accent">{token.role}</Badge>
        {token.owner !== null && <span className="ml-2 text-xs text-muted">by {token.owner}</span>}
      </span>
      <span className="text-xs text-muted">
        {token.used_at === null ? (
          "never used"
        ) : (
          <>
            used <Ago at={token.used_at} />
          </>
        )}
      </span>
      <span className={`text-xs ${expired ? "text-bad" : "text-muted"}`}>
        {token.expires_at === null ? (
          "does not expire"
        ) : expired ? (
          "expired"
        ) : (
          <>
            expires <Countdown to={token.expires_at} />
          </>
        )}
      </span>
      <IconButton icon="trash" label={`Remove token ${token.name}`} tone="danger" onClick={onRemove} />
    </li>
  );
}
