/** One lane: gauge, queue, and its verbs. */

import { useState } from "react";
import { useClearLane, usePauseLane, useResumeLane } from "@/api/queries/lanes";
import { useMay } from "@/api/queries/me";
import type { Lane } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { TextField } from "@/components/Field";
import { IconButton } from "@/components/IconButton";
import { Menu } from "@/components/Menu";
import { Ago } from "@/components/Time";
import { useProblemToast, useToast } from "@/components/Toast";
import { LaneGauge } from "@/pages/lanes/LaneGauge";
import { LaneLimit } from "@/pages/lanes/LaneLimit";
import { RateDialog } from "@/pages/lanes/RateDialog";
import { counted } from "@/time/format";

type Asking = "pause" | "clear" | "rate" | null;

export function LaneCard({ lane }: { lane: Lane }) {
  const [asking, setAsking] = useState<Asking>(null);
  const may = useMay("operator");
  const resume = useResumeLane();
  const problem = useProblemToast();
  const close = (): void => setAsking(null);
  return (
    <Card
      title={<span className="font-mono">{lane.name}</span>}
      aside={
        lane.paused ? (
          <Badge tone="warn" icon="pause">
            paused
          </Badge>
        ) : undefined
      }
      actions={
        <>
          {lane.paused ? (
            <Button
              size="small"
              icon="play"
              why={may.reason}
              onClick={() => resume.mutate({ name: lane.name }, { onError: problem(`Lane ${lane.name} could not be resumed`) })}
            >
              Resume
            </Button>
          ) : (
            <Button size="small" icon="pause" why={may.reason} onClick={() => setAsking("pause")}>
              Pause
            </Button>
          )}
          <Menu
            trigger={<IconButton icon="dots" label={`More actions for lane ${lane.name}`} />}
            items={[
              { label: "Set rate…", icon: "activity", why: may.reason, onSelect: () => setAsking("rate") },
              "line",
              {
                label: "Clear queue…",
                icon: "trash",
                danger: true,
                why: may.reason ?? (lane.queued === 0 ? "Nothing is queued." : undefined),
                onSelect: () => setAsking("clear"),
              },
            ]}
          />
        </>
      }
    >
      <div className="flex items-center gap-4">
        <LaneGauge lane={lane} />
        <dl className="grid min-w-0 flex-1 grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-1 text-sm">
          <dt className="text-muted">Limit</dt>
          <dd>
            <LaneLimit lane={lane} />
          </dd>
          <dt className="text-muted">Queued</dt>
          <dd className="tabular-nums">
            {lane.queued}
            {lane.oldest_at !== null && (
              <span className="text-xs text-muted">
                {" "}
                · oldest <Ago at={lane.oldest_at} />
              </span>
            )}
          </dd>
          <dt className="text-muted">Rate</dt>
          <dd className="tabular-nums">{lane.rate ?? <span className="text-muted">no limit</span>}</dd>
        </dl>
      </div>
      {lane.paused && lane.note !== null && lane.note !== "" && (
        <p className="mt-3 rounded-md bg-warn-soft px-3 py-1.5 text-xs break-words">{lane.note}</p>
      )}
      {asking === "pause" && <PauseDialog lane={lane} onClose={close} />}
      {asking === "clear" && <ClearDialog lane={lane} onClose={close} />}
      {asking === "rate" && <RateDialog lane={lane} onClose={close} />}
    </Card>
  );
}

interface AskProps {
  lane: Lane;
  onClose: () => void;
}

function PauseDialog({ lane, onClose }: AskProps) {
  const [note, setNote] = useState("");
  const pause = usePauseLane();
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={`Pause lane ${lane.name}?`}
      text="No run starts in this lane, on any node, until it is resumed. Active runs go on."
      action="Pause lane"
      onConfirm={() => pause.mutateAsync({ name: lane.name, note: note.trim() })}
    >
      <TextField
        label="Note"
        hint="Everybody sees it next to the lane."
        placeholder="The database moves tonight"
        value={note}
        onChange={(event) => setNote(event.target.value)}
      />
    </ConfirmDialog>
  );
}

function ClearDialog({ lane, onClose }: AskProps) {
  const clear = useClearLane();
  const say = useToast();
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={`Clear the queue of lane ${lane.name}?`}
      text={`${counted(lane.queued, "queued run")} will end as cancelled. Active runs go on. This cannot be undone.`}
      action="Clear queue"
      danger
      onConfirm={async () => {
        const { cleared } = await clear.mutateAsync({ name: lane.name });
        say({ title: `${counted(cleared, "run")} cancelled in lane ${lane.name}` });
      }}
    />
  );
}
