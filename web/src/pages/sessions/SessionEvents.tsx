/** What happened in a session, the latest first. */

import { Link } from "@tanstack/react-router";
import { useSessionEvents } from "@/api/queries/sessions";
import type { SessionEvent } from "@/api/types";
import { Badge, type BadgeTone } from "@/components/Badge";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import type { IconName } from "@/components/Icon";
import { QueryView } from "@/components/QueryView";
import { look } from "@/components/stateLook";
import { Time } from "@/components/Time";
import { VirtualRows } from "@/components/VirtualRows";
import { sendCommand } from "@/pages/sessions/draft";

const KINDS: Record<string, { tone: BadgeTone; icon: IconName }> = {
  enqueued: { tone: "wait", icon: "inbox" },
  debounced: { tone: "quiet", icon: "swap" },
  dropped: { tone: "warn", icon: "trash" },
  started: { tone: "info", icon: "play" },
  stopped: { tone: "warn", icon: "stop" },
};

function lookOf(event: SessionEvent): { tone: BadgeTone; icon: IconName } {
  const { state, cause } = event.data;
  if (cause === "errors") return look("errors");
  if (event.kind === "finished" && typeof state === "string") return look(state);
  return KINDS[event.kind] ?? { tone: "quiet", icon: "circle" };
}

const words = (data: Record<string, unknown>): string =>
  Object.entries(data)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" · ");

export function SessionEvents({ session }: { session: string }) {
  const events = useSessionEvents(session);
  return (
    <Card flush>
      <QueryView query={events}>
        {(items) =>
          items.length === 0 ? (
            <EmptyState
              icon="history"
              title="No events yet"
              text="Messages that are sent, started, finished or stopped appear here. To send one:"
              command={sendCommand({ session })}
            />
          ) : (
            <VirtualRows
              items={items.toReversed()}
              rowKey={(event) => event.id}
              label="Events"
              row={(event) => <EventRow event={event} />}
            />
          )
        }
      </QueryView>
    </Card>
  );
}

function EventRow({ event }: { event: SessionEvent }) {
  const { tone, icon } = lookOf(event);
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-2 text-sm">
      <Badge tone={tone} icon={icon}>
        {event.kind}
      </Badge>
      {event.run !== null && (
        <Link
          to="/runs/$id"
          params={{ id: String(event.run) }}
          className="rounded text-xs tabular-nums hover:underline"
        >
          run {event.run}
        </Link>
      )}
      <span className="min-w-0 flex-1 basis-40 truncate text-xs text-muted">{words(event.data)}</span>
      <Time at={event.at} seconds className="text-xs text-muted" />
    </div>
  );
}
