/** The limit of a lane, which can be changed where it stands. */

import { type FormEvent, useEffect, useRef, useState } from "react";
import { useResizeLane } from "@/api/queries/lanes";
import { useMay } from "@/api/queries/me";
import type { Lane } from "@/api/types";
import { controlClass } from "@/components/Field";
import { Icon } from "@/components/Icon";
import { IconButton } from "@/components/IconButton";
import { Tooltip } from "@/components/Tooltip";
import { useProblemToast, useToast } from "@/components/Toast";

export function LaneLimit({ lane }: { lane: Lane }) {
  const [text, setText] = useState<string | null>(null);
  const may = useMay("operator");
  const resize = useResizeLane();
  const say = useToast();
  const problem = useProblemToast();
  const button = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  useEffect(() => {
    // The field that had the focus is gone.
    if (text === null && wasOpen.current) button.current?.focus();
    wasOpen.current = text !== null;
  }, [text]);

  const save = (event: FormEvent): void => {
    event.preventDefault();
    const limit = Number(text);
    setText(null);
    if (limit === lane.limit) return;
    resize.mutate(
      { name: lane.name, limit },
      {
        onSuccess: () => say({ title: `The limit of lane ${lane.name} is now ${limit}` }),
        onError: problem(`The limit of lane ${lane.name} could not be changed`),
      },
    );
  };

  if (text === null) {
    return (
      <Tooltip text={may.reason ?? "Change limit"}>
        <button
          ref={button}
          type="button"
          aria-disabled={may.reason !== undefined || undefined}
          aria-label={`Limit of lane ${lane.name}: ${lane.limit}. Change it`}
          onClick={() => may.allowed && setText(String(lane.limit))}
          className="group -mx-1 inline-flex items-center gap-1.5 rounded px-1 tabular-nums hover:bg-sunken aria-disabled:cursor-default"
        >
          {lane.limit}
          {may.allowed && <Icon name="edit" size={12} className="text-muted" />}
        </button>
      </Tooltip>
    );
  }
  return (
    <form onSubmit={save} className="-my-1 flex items-center gap-1">
      <input
        autoFocus
        type="number"
        min={1}
        required
        aria-label={`New limit of lane ${lane.name}`}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onFocus={(event) => event.target.select()}
        onKeyDown={(event) => event.key === "Escape" && setText(null)}
        className={`${controlClass} h-7 max-w-20`}
      />
      <IconButton type="submit" icon="check" label="Save" />
      <IconButton icon="cross" label="Cancel" onClick={() => setText(null)} />
    </form>
  );
}
