/** Sessions: the mailboxes, with search, busy ones first in sight. */

import { Link } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { useMay } from "@/api/queries/me";
import { useSessions } from "@/api/queries/sessions";
import type { Session } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { SearchField } from "@/components/SearchField";
import { Segmented } from "@/components/Segmented";
import { Ago } from "@/components/Time";
import { VirtualRows } from "@/components/VirtualRows";
import { totalText } from "@/pages/run/Totals";
import { SendDialog } from "@/pages/sessions/SendDialog";
import { useUrlState } from "@/state/urlState";

const MOST = 500;

export function SessionsPage() {
  const [values, change] = useUrlState();
  const [sending, setSending] = useState(false);
  const may = useMay("operator");
  const q = values["q"] ?? "";
  const busy = values["busy"] === "true";
  const sessions = useSessions({ q, busy, limit: MOST });
  const search = useCallback((text: string) => change({ q: text }), [change]);

  return (
    <>
      <PageHeader
        title="Sessions"
        description="A session is a durable mailbox: its messages run one after the other."
        actions={
          <Button variant="primary" icon="send" why={may.reason} onClick={() => setSending(true)}>
            Send a message
          </Button>
        }
      />
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <SearchField label="Search sessions" value={q} onChange={search} />
        <Segmented
          label="Which sessions"
          value={busy ? "busy" : "all"}
          options={[
            { value: "all", label: "All" },
            { value: "busy", label: "Busy" },
          ]}
          onChange={(which) => change({ busy: which === "busy" ? "true" : undefined })}
        />
      </div>
      <Card flush>
        <QueryView query={sessions}>
          {({ items }) =>
            items.length === 0 ? (
              <Nothing filtered={q !== "" || busy} />
            ) : (
              <>
                <VirtualRows
                  items={items}
                  rowKey={(session) => session.key}
                  label="Sessions"
                  row={(session) => <SessionRow session={session} />}
                />
                {items.length === MOST && (
                  <p className="border-t border-line px-4 py-2 text-xs text-muted">
                    The latest {MOST} are shown; search to find others.
                  </p>
                )}
              </>
            )
          }
        </QueryView>
      </Card>
      <SendDialog open={sending} onOpenChange={setSending} />
    </>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <EmptyState icon="search" title="No session matches" text="Search for a part of a key, or show all." />
    );
  return (
    <EmptyState
      icon="inbox"
      title="No sessions yet"
      text="The first message to a key creates a session. Send it from code, or on the command line:"
      command={'ostinato session send dm:42 "hello" --task answer'}
    />
  );
}

function SessionRow({ session }: { session: Session }) {
  return (
    <Link
      to="/sessions/$key"
      params={{ key: session.key }}
      className="flex flex-wrap items-center gap-x-4 gap-y-0.5 border-b border-line px-4 py-2.5 text-sm hover:bg-sunken focus-visible:-outline-offset-2"
    >
      <span className="min-w-0 flex-1 basis-40 truncate font-mono font-medium">{session.key}</span>
      {session.throttled && <Badge tone="warn">throttled</Badge>}
      <span className="flex gap-1.5">
        {session.running > 0 && (
          <Badge tone="info" icon="play">
            {session.running} running
          </Badge>
        )}
        {session.queued > 0 && (
          <Badge tone="wait" icon="hourglass">
            {session.queued} queued
          </Badge>
        )}
        {session.running === 0 && session.queued === 0 && <span className="text-xs text-muted">idle</span>}
      </span>
      {session.cost_usd > 0 && (
        <span className="text-xs text-muted tabular-nums">{totalText("cost_usd", session.cost_usd)}</span>
      )}
      <span className="w-28 text-right text-xs text-muted max-sm:w-auto">
        sent <Ago at={session.sent_at} />
      </span>
    </Link>
  );
}
