/** What the palette can do to a schedule, a lane or a run, by its verb: `run backup`, `pause cron`, `cancel 7`. */

import { useNavigate } from "@tanstack/react-router";
import { useLanes, usePauseLane, useResumeLane } from "@/api/queries/lanes";
import { useMay } from "@/api/queries/me";
import { useRun } from "@/api/queries/runs";
import { useDisable, useEnable, useTrigger } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { hasEnded } from "@/components/stateLook";
import { useProblemToast, useToast } from "@/components/Toast";
import { fuzzy } from "./fuzzy";
import type { Entry } from "./Palette";

const VERBS = ["run", "enable", "disable", "pause", "resume", "cancel"] as const;
/** So many schedules are offered. */
export const FEW = 8;
type Verb = (typeof VERBS)[number];

/** The verb that a text begins with, and what it is about. */
export function spoken(text: string): { verb: Verb; about: string } | null {
  const [first = "", ...rest] = text.trim().toLowerCase().split(/\s+/);
  const verb = VERBS.find((each) => each === first);
  return verb === undefined || rest.length === 0 ? null : { verb, about: text.trim().slice(first.length).trim() };
}

/** The entries of what is typed. `schedules` are those that were found; whoever may only look is offered nothing. */
export function useVerbs(text: string, schedules: readonly Schedule[]): Entry[] {
  const { allowed } = useMay("operator");
  const navigate = useNavigate();
  const say = useToast();
  const problem = useProblemToast();
  const trigger = useTrigger();
  const enable = useEnable();
  const disable = useDisable();
  const pause = usePauseLane();
  const resume = useResumeLane();
  const lanes = useLanes().data?.items ?? [];
  const said = spoken(text);
  const id = said?.verb === "cancel" ? Number(/^(?:run\s+)?#?(\d+)$/i.exec(said.about)?.[1] ?? 0) : 0;
  const run = useRun(id, allowed && id > 0).data;
  if (!allowed || said === null) return [];
  const { verb, about } = said;

  // The palette is closed before an answer comes: what follows must not hang on it.
  const told = (work: Promise<unknown>, title: string, failure: string) =>
    void work.then(() => say({ title }), problem(failure));
  const ofSchedule = (label: string, schedule: Schedule, run: () => void): Entry => ({
    id: `${verb}-${schedule.id}`,
    group: "Do",
    label: `${label} ${schedule.name}`,
    detail: schedule.sentence,
    icon: verb === "run" ? "play" : verb === "enable" ? "check" : "pause",
    run,
  });
  const start = async (ref: string) => {
    const { id } = await trigger.mutateAsync({ ref });
    void navigate({ to: "/runs/$id", params: { id: String(id) } });
  };

  // The best find is no order: a run, and a stop, of another schedule than is meant are asked about.
  const asking = (label: string, { name }: Schedule): Pick<Entry, "ask"> =>
    name === about ? {} : { ask: { title: `${label} ${name}?`, text: `You typed ${about}.`, action: label } };

  switch (verb) {
    case "run":
      return schedules
        .filter(({ work }) => work.kind !== "check_in")
        .slice(0, FEW)
        .map((each) => ({
          ...ofSchedule("Run", each, () => told(start(each.name), `${each.name} is queued`, `${each.name} could not be run`)),
          ...asking("Run", each),
        }));
    case "enable":
      return schedules
        .filter(({ enabled }) => !enabled)
        .slice(0, FEW)
        .map((each) =>
          ofSchedule("Enable", each, () =>
            told(enable.mutateAsync({ ref: each.name }), `${each.name} is on`, `${each.name} could not be enabled`),
          ),
        );
    case "disable":
      return schedules
        .filter(({ enabled }) => enabled)
        .slice(0, FEW)
        .map((each) => ({
          ...ofSchedule("Disable", each, () =>
            told(disable.mutateAsync({ ref: each.name, keepRetries: false }), `${each.name} is off`, `${each.name} could not be disabled`),
          ),
          ...asking("Disable", each),
        }));
    case "pause":
    case "resume":
      return lanes
        .filter((lane) => lane.paused === (verb === "resume") && fuzzy(lane.name, about.replace(/^lane\s+/i, "")) !== null)
        .map(({ name }) => ({
          id: `${verb}-lane-${name}`,
          group: "Do",
          label: `${verb === "pause" ? "Pause" : "Resume"} lane ${name}`,
          icon: verb === "pause" ? "pause" : "play",
          run: () =>
            told(
              (verb === "pause" ? pause : resume).mutateAsync({ name }),
              `Lane ${name} is ${verb}d`,
              `Lane ${name} could not be ${verb}d`,
            ),
        }));
    case "cancel": {
      // One that has ended cannot be cancelled.
      if (run === undefined || hasEnded(run.state)) return [];
      const ask = () => void navigate({ to: "/runs/$id", params: { id: String(id) }, search: { cancel: "1" } });
      return [{ id: "cancel-run", group: "Do", label: `Cancel run ${id}…`, icon: "stop", run: ask }];
    }
  }
}
