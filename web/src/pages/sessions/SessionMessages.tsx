/** The runs of a session, newest first, with what they carry. */

import { Link } from "@tanstack/react-router";
import { itemsOf } from "@/api/queries/pages";
import { useMessages } from "@/api/queries/sessions";
import type { Run } from "@/api/types";
import { Card } from "@/components/Card";
import { RunDuration } from "@/components/Duration";
import { EmptyState } from "@/components/EmptyState";
import { QueryView } from "@/components/QueryView";
import { StateBadge } from "@/components/StateBadge";
import { Time } from "@/components/Time";
import { endOf } from "@/components/rowsEnd";
import { VirtualRows } from "@/components/VirtualRows";
import { sendCommand } from "@/pages/sessions/sendCommand";
import { counted } from "@/time/format";

/** The payloads of a message's run; other runs have none. */
export function payloadsOf(run: Pick<Run, "work">): unknown[] {
  if (run.work?.kind !== "function") return [];
  const payloads = run.work.kwargs["payloads"];
  return Array.isArray(payloads) ? payloads : [];
}

const shown = (payload: unknown): string => (typeof payload === "string" ? payload : JSON.stringify(payload));

export function SessionMessages({ session }: { session: string }) {
  const messages = useMessages(session);
  return (
    <Card flush>
      <QueryView query={messages}>
        {(data) => {
          const items = itemsOf(data);
          if (items.length === 0)
            return (
              <EmptyState
                icon="inbox"
                title="No messages, or none that are still kept"
                text="Send one here, or on the command line:"
                command={sendCommand(session)}
              />
            );
          return (
            <VirtualRows
              items={items}
              rowKey={(run) => run.id}
              label="Messages"
              estimate={60}
              row={(run) => <MessageRow run={run} />}
              {...endOf(messages)}
            />
          );
        }}
      </QueryView>
    </Card>
  );
}

function MessageRow({ run }: { run: Run }) {
  const payloads = payloadsOf(run);
  return (
    <Link
      to="/runs/$id"
      params={{ id: String(run.id) }}
      className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-2.5 text-sm hover:bg-sunken focus-visible:-outline-offset-2"
    >
      <StateBadge state={run.state} reason={run.reason} />
      <span className="text-xs text-muted tabular-nums">run {run.id}</span>
      <span className="min-w-0 flex-1 basis-40 truncate">
        <span className="text-muted">{run.task}</span>{" "}
        <span className="font-mono text-xs">{payloads.slice(0, 3).map(shown).join(" · ")}</span>
        {payloads.length > 3 && <span className="text-xs text-muted"> and {payloads.length - 3} more</span>}
      </span>
      {payloads.length > 1 && <span className="text-xs text-muted">{counted(payloads.length, "message")}</span>}
      <span className="text-xs text-muted">
        <RunDuration run={run} />
      </span>
      <Time at={run.due_at} seconds className="w-28 text-right text-xs text-muted" />
    </Link>
  );
}
