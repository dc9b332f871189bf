/** One session: its mailbox, what happened in it, send and stop. */

import { useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/keys";
import { useLive } from "@/api/live";
import { useMay } from "@/api/queries/me";
import { useSession, useStopSession } from "@/api/queries/sessions";
import type { Session } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Banner } from "@/components/Banner";
import { Button } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { Stat } from "@/components/Stat";
import { Tabs } from "@/components/Tabs";
import { Ago, Time } from "@/components/Time";
import { useProblemToast, useToast } from "@/components/Toast";
import { SendDialog } from "@/pages/sessions/SendDialog";
import { SessionEvents } from "@/pages/sessions/SessionEvents";
import { SessionMessages } from "@/pages/sessions/SessionMessages";
import { useGently } from "@/state/gently";
import { useUrlState } from "@/state/urlState";
import { counted } from "@/time/format";

export function SessionPage() {
  const { key = "" }: { key?: string } = useParams({ strict: false });
  const session = useSession(key);
  const cache = useQueryClient();
  const refresh = useGently(() => void cache.invalidateQueries({ queryKey: keys.session(key) }), 300);
  useLive(`session:${key}`, (message) => {
    // Also when the topic begins, or begins anew after a drop: what happened before that is not told.
    if (message.type !== "error") refresh();
  });
  return (
    <>
      <PageHeader
        title={key}
        heading={<span className="font-mono">{key}</span>}
        crumbs={[{ label: "Sessions", to: "/sessions" }]}
        actions={session.data === undefined ? undefined : <Actions session={session.data} />}
      />
      <QueryView query={session}>{(found) => <Body session={found} />}</QueryView>
    </>
  );
}

function Actions({ session }: { session: Session }) {
  const [asking, setAsking] = useState<"send" | "stop_all" | null>(null);
  const may = useMay("operator");
  const stop = useStopSession();
  const say = useToast();
  const problem = useProblemToast();
  const idle = session.running === 0 ? "Nothing is running in this session." : undefined;
  const empty = session.running === 0 && session.queued === 0 ? "This session is idle." : undefined;
  const stopOne = (): void =>
    stop.mutate(
      { key: session.key, all: false },
      {
        onSuccess: () => say({ title: "The oldest run was told to stop" }),
        onError: problem("The session could not be stopped"),
      },
    );
  return (
    <>
      <Button icon="stop" why={may.reason ?? idle} busy={stop.isPending} onClick={stopOne}>
        Stop
      </Button>
      <Button icon="ban" why={may.reason ?? empty} onClick={() => setAsking("stop_all")}>
        Stop all
      </Button>
      <Button variant="primary" icon="send" why={may.reason} onClick={() => setAsking("send")}>
        Send
      </Button>
      <SendDialog
        open={asking === "send"}
        onOpenChange={(open) => setAsking(open ? "send" : null)}
        session={session.key}
      />
      <ConfirmDialog
        open={asking === "stop_all"}
        onOpenChange={(open) => setAsking(open ? "stop_all" : null)}
        title={`Stop everything in session ${session.key}?`}
        text={`${counted(session.running, "run")} will be cancelled and ${counted(session.queued, "queued run")} dropped. Nothing that was sent before now will start.`}
        action="Stop all"
        danger
        onConfirm={() => stop.mutateAsync({ key: session.key, all: true })}
      />
    </>
  );
}

function Body({ session }: { session: Session }) {
  const [values, change] = useUrlState();
  return (
    <div className="flex flex-col gap-4">
      {session.throttled && (
        <Banner tone="warn" title="Throttled">
          It runs one at a time, because its context window is nearly full.
        </Banner>
      )}
      <div className="grid grid-cols-2 gap-3 sm:grid-cols-4">
        <Stat
          label="Running"
          icon="play"
          tone={session.running > 0 ? "info" : undefined}
          value={session.running}
          detail={`at most ${session.max_concurrent} at once`}
        />
        <Stat
          label="Queued"
          icon="hourglass"
          value={session.queued}
          detail={
            session.oldest_at === null ? (
              "nothing is waiting"
            ) : (
              <>
                oldest <Ago at={session.oldest_at} />
              </>
            )
          }
        />
        <Stat
          label="Last sent"
          icon="send"
          value={<Ago at={session.sent_at} />}
          detail={<Time at={session.sent_at} />}
        />
        <Stat
          label="Stopped"
          icon="stop"
          value={session.stopped_at === null ? "never" : <Ago at={session.stopped_at} />}
          detail={session.stopped_at === null ? undefined : "messages sent before that do not start"}
        />
      </div>
      <Tabs
        label="Messages and events"
        value={values["tab"] === "events" ? "events" : "messages"}
        onChange={(tab) => change({ tab: tab === "messages" ? undefined : tab })}
        tabs={[
          {
            id: "messages",
            label: (
              <span className="flex items-center gap-1.5">
                Messages {session.queued > 0 && <Badge tone="wait">{session.queued}</Badge>}
              </span>
            ),
            content: <SessionMessages session={session.key} />,
          },
          { id: "events", label: "Events", content: <SessionEvents session={session.key} /> },
        ]}
      />
    </div>
  );
}
