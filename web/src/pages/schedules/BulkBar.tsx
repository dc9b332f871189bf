import { useState } from "react";
import { useMay } from "@/api/queries/me";
import { type Bulk, useBulk } from "@/api/queries/schedules";
import type { BulkAnswer } from "@/api/types";
import { Button } from "@/components/Button";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { IconButton } from "@/components/IconButton";
import { useProblemToast, useToast } from "@/components/Toast";
import { counted } from "@/time/format";
import { BulkFailures, DONE } from "./BulkFailures";
import { PauseDialog } from "./PauseDialog";

type Action = Bulk["action"];

interface Props {
  names: readonly string[];
  onClear: () => void;
  /** Those that failed stay selected, so that they can be looked at. */
  onDone: (failed: string[]) => void;
}

const MOST = 1000;

/** What can be done with all selected schedules at once. Some may fail: those are listed with their reasons. */
export function BulkBar({ names, onClear, onDone }: Props) {
  const may = useMay("operator");
  const bulk = useBulk();
  const say = useToast();
  const tell = useProblemToast();
  const [asking, setAsking] = useState<"trigger" | "disable" | "remove" | null>(null);
  const [answer, setAnswer] = useState<{ action: Action; answer: BulkAnswer } | null>(null);
  const why = may.reason ?? (names.length > MOST ? `You can change at most ${MOST} schedules at once.` : undefined);
  const many = counted(names.length, "schedule");
  const several = names.length !== 1;

  async function act(action: Action, note?: string): Promise<void> {
    const wanted: Bulk = { action, names: [...names] };
    if (note !== undefined) wanted.note = note;
    const got = await bulk.mutateAsync(wanted);
    onDone(got.failed.map((each) => each.name));
    if (got.failed.length > 0) setAnswer({ action, answer: got });
    else say({ title: `${counted(got.done.length, "schedule")} ${DONE[action]}` });
  }
  const close = () => setAsking(null);

  return (
    <>
      {names.length > 0 && (
        <div
          role="region"
          aria-label="Selected schedules"
          className="fixed inset-x-3 bottom-[calc(var(--bottom-bar)+0.5rem)] z-30 mx-auto flex w-fit max-w-full flex-wrap items-center gap-2 rounded-xl border border-line-strong bg-raised px-3 py-2 shadow-raised md:bottom-5"
        >
          <span className="px-1 text-sm font-medium tabular-nums">{names.length.toLocaleString("en-US")} selected</span>
          <Button size="small" icon="play" why={why} onClick={() => setAsking("trigger")}>
            Run now
          </Button>
          <Button
            size="small"
            icon="check"
            why={why}
            busy={bulk.isPending && bulk.variables.action === "enable"}
            onClick={() => void act("enable").catch(tell("The schedules could not be enabled"))}
          >
            Enable
          </Button>
          <Button size="small" icon="pause" why={why} onClick={() => setAsking("disable")}>
            Pause
          </Button>
          <Button size="small" icon="trash" why={why} onClick={() => setAsking("remove")}>
            Remove
          </Button>
          <IconButton icon="cross" label="Clear selection" onClick={onClear} />
        </div>
      )}
      <ConfirmDialog
        open={asking === "trigger"}
        onOpenChange={close}
        title={`Run ${many} now?`}
        text={`${several ? "Each" : "It"} runs once, in addition to its due times, as soon as there is room in its lane.`}
        action={`Run ${many}`}
        onConfirm={() => act("trigger")}
      />
      {asking === "disable" && (
        <PauseDialog what={many} several={several} onClose={close} onPause={(note) => act("disable", note)} />
      )}
      <ConfirmDialog
        open={asking === "remove"}
        onOpenChange={close}
        title={`Remove ${many}?`}
        text={`The ${several ? "schedules, their" : "schedule, its"} runs and their output will be removed. This cannot be undone.`}
        action={`Remove ${many}`}
        danger
        onConfirm={() => act("remove")}
      />
      {answer !== null && (
        <BulkFailures action={answer.action} answer={answer.answer} onClose={() => setAnswer(null)} />
      )}
    </>
  );
}
