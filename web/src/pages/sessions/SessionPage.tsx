/** One session: its conversation, what it used, what happened in it, send and stop. */

import { useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/keys";
import { useLive } from "@/api/live";
import { useMay } from "@/api/queries/me";
import { useSession, useStopSession } from "@/api/queries/sessions";
import type { Session } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { classes, FILL } from "@/components/classes";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { Tabs } from "@/components/Tabs";
import { useProblemToast, useToast } from "@/components/Toast";
import { Conversation, useWriting } from "@/pages/sessions/Conversation";
import { SendDialog } from "@/pages/sessions/SendDialog";
import { SessionEvents } from "@/pages/sessions/SessionEvents";
import { SessionHead } from "@/pages/sessions/SessionHead";
import { useGently } from "@/state/gently";
import { useUrlState } from "@/state/urlState";
import { counted } from "@/time/format";

export function SessionPage() {
  const { key = "" }: { key?: string } = useParams({ strict: false });
  return <OneSession key={key} name={key} />;
}

function OneSession({ name }: { name: string }) {
  const session = useSession(name);
  const cache = useQueryClient();
  // What is being loaded is not begun anew, or a chatty run would keep its own thread from arriving.
  const refresh = useGently(
    () => void cache.invalidateQueries({ queryKey: keys.session(name) }, { cancelRefetch: false }),
    300,
  );
  useLive(`session:${name}`, (message) => {
    // Also when the topic begins, or begins anew after a drop: what happened before that is not told.
    if (message.type !== "error") refresh();
  });
  return (
    // As high as the screen leaves between the header and the bottom: the box is in sight, however short the thread is.
    <div className="flex min-h-[calc(100dvh-10.25rem-env(safe-area-inset-bottom))] flex-col md:min-h-[calc(100dvh-6.75rem)]">
      <PageHeader
        title={name}
        heading={<span className="font-mono">{name}</span>}
        crumbs={[{ label: "Sessions", to: "/sessions" }]}
        actions={session.data === undefined ? undefined : <Actions session={session.data} />}
      />
      <QueryView query={session}>{(found) => <Body session={found} />}</QueryView>
    </div>
  );
}

function Actions({ session }: { session: Session }) {
  const [asking, setAsking] = useState(false);
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
      <Button icon="ban" why={may.reason ?? empty} onClick={() => setAsking(true)}>
        Stop all
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
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
  const [sending, setSending] = useState(false);
  const writing = useWriting(session.key);
  return (
    <div className={classes(FILL, "gap-3")}>
      <SessionHead session={session} />
      <Tabs
        label="Conversation and events"
        fill
        value={values["tab"] === "events" ? "events" : "conversation"}
        onChange={(tab) => change({ tab: tab === "conversation" ? undefined : tab })}
        tabs={[
          {
            id: "conversation",
            label: (
              <span className="flex items-center gap-1.5">
                Conversation {session.queued > 0 && <Badge tone="wait">{session.queued}</Badge>}
              </span>
            ),
            content: <Conversation session={session.key} writing={writing} onOther={() => setSending(true)} />,
          },
          { id: "events", label: "Events", content: <SessionEvents session={session.key} /> },
        ]}
      />
      <SendDialog open={sending} onOpenChange={setSending} session={session.key} />
    </div>
  );
}
