/** The command palette: pages, actions and schedules, all by keyboard. */

import { useNavigate } from "@tanstack/react-router";
import { Dialog as Radix } from "radix-ui";
import { type KeyboardEvent, useDeferredValue, useEffect, useRef, useState } from "react";
import { hasHostLogin } from "@/api/mount";
import { useLogout, useMay } from "@/api/queries/me";
import { itemsOf } from "@/api/queries/pages";
import { useSchedules } from "@/api/queries/schedules";
import type { Schedule } from "@/api/types";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { Icon, type IconName } from "@/components/Icon";
import { Kbd } from "@/components/Kbd";
import { useReturnFocus } from "@/components/returnFocus";
import { useProblemToast } from "@/components/Toast";
import { THEME_LOOK } from "@/shell/Header";
import { byName, fuzzy } from "@/shell/fuzzy";
import { PLACES } from "@/shell/navigation";
import { FEW, spoken, useVerbs } from "@/shell/useVerbs";
import { THEMES, theme } from "@/state/theme";
import { useZone, ZONE_LABELS, ZONES } from "@/state/zone";

const MANY = 200;

interface PaletteProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  onKeys: () => void;
}

export interface Entry {
  id: string;
  group: string;
  label: string;
  detail?: string;
  icon: IconName;
  keys?: string;
  /** What is asked before it is done, and the word on its button. */
  ask?: { title: string; text: string; action: string };
  run: () => void;
}

export function Palette({ open, onOpenChange, onKeys }: PaletteProps) {
  const returnFocus = useReturnFocus(open);
  const [asked, setAsked] = useState<Entry | null>(null);
  const choose = (entry: Entry): void => {
    onOpenChange(false);
    if (entry.ask === undefined) entry.run();
    else setAsked(entry);
  };
  if (asked?.ask !== undefined)
    return <ConfirmDialog open {...asked.ask} onOpenChange={() => setAsked(null)} onConfirm={asked.run} />;
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="enter-veil fixed inset-0 z-40 bg-black/45" />
        <Radix.Content
          aria-describedby={undefined}
          onCloseAutoFocus={returnFocus}
          className="enter fixed inset-x-2 top-2 z-50 mx-auto flex max-h-[80dvh] max-w-xl flex-col overflow-hidden rounded-xl border border-line bg-raised shadow-raised focus:outline-none sm:top-[14vh]"
        >
          <Radix.Title className="sr-only">Search and commands</Radix.Title>
          <Finder onChoose={choose} onKeys={onKeys} />
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function useCommands(onKeys: () => void): Entry[] {
  const navigate = useNavigate();
  const logout = useLogout();
  const problem = useProblemToast();
  const zone = useZone();
  const { allowed } = useMay("operator");
  const making: Entry[] = [
    {
      id: "new",
      group: "Actions",
      label: "New schedule",
      icon: "plus",
      keys: "n",
      run: () => void navigate({ to: "/schedules/new" }),
    },
  ];
  const leaving: Entry[] = [
    {
      id: "logout",
      group: "Actions",
      label: "Log out",
      icon: "logout",
      // The palette is closed before the answer comes: what follows must not hang on it.
      run: () => void logout.mutateAsync().catch(problem("You could not be logged out")),
    },
  ];
  return [
    ...PLACES.map(({ to, label, icon, keys }) => ({
      id: to,
      group: "Go to",
      label,
      icon,
      keys,
      run: () => void navigate({ to }),
    })),
    ...(allowed ? making : []),
    ...THEMES.map((each) => ({
      id: `theme-${each}`,
      group: "Actions",
      label: `Theme: ${THEME_LOOK[each].label}`,
      icon: THEME_LOOK[each].icon,
      run: () => theme.set(each),
    })),
    ...ZONES.map((each) => ({
      id: `zone-${each}`,
      group: "Actions",
      label: `Show times in: ${ZONE_LABELS[each]}`,
      icon: "clock" as const,
      run: () => zone.set(each),
    })),
    { id: "keys", group: "Actions", label: "Show keyboard shortcuts", icon: "keyboard", keys: "?", run: onKeys },
    ...(hasHostLogin() ? [] : leaving),
  ];
}

/** Those that have what is typed, letter by letter; the best first. */
function found<T>(items: readonly T[], text: string, textOf: (item: T) => string): T[] {
  if (text === "") return [...items];
  return items
    .map((item) => ({ item, cost: fuzzy(textOf(item), text) }))
    .filter((each): each is { item: T; cost: number } => each.cost !== null)
    .sort((one, other) => one.cost - other.cost)
    .map(({ item }) => item);
}

/** The server finds parts of names among all; of the first so many also letters here and there are found. The name that
 *  fits best is the first, whoever found it. */
function useFoundSchedules(text: string): Schedule[] {
  const asked = useDeferredValue(text);
  const parts = useSchedules({ q: asked, limit: MANY, sort: "name" });
  const all = useSchedules({ limit: MANY, sort: "name" });
  // While the answer is under way, Enter must not take what another text had found.
  const isFresh = asked === text && !parts.isPlaceholderData;
  const near = text === "" ? [] : found(itemsOf(all.data), text, (schedule) => schedule.name);
  const both = [...itemsOf(isFresh ? parts.data : undefined), ...near];
  const each = [...new Map(both.map((schedule) => [schedule.id, schedule])).values()];
  return text === "" ? each : each.sort(byName(text, (schedule) => schedule.name));
}

function useEntries(text: string, onKeys: () => void): Entry[] {
  const navigate = useNavigate();
  const commands = useCommands(onKeys);
  const said = spoken(text);
  const matched = useFoundSchedules(said?.about ?? text.trim());
  const verbs = useVerbs(text, matched);
  const schedules = matched.slice(0, FEW).map((schedule): Entry => ({
    id: `schedule-${schedule.id}`,
    group: "Schedules",
    label: schedule.name,
    detail: schedule.sentence,
    icon: schedule.broken === null ? "calendar" : "alert",
    run: () => void navigate({ to: "/schedules/$name", params: { name: schedule.name } }),
  }));
  const run = /^#?(\d+)$/.exec(text.trim())?.[1];
  const runs: Entry[] =
    run === undefined
      ? []
      : [
          {
            id: "run",
            group: "Runs",
            label: `Run ${run}`,
            icon: "activity",
            run: () => void navigate({ to: "/runs/$id", params: { id: run } }),
          },
        ];
  const shown = found(commands, text.trim(), (entry) => `${entry.group} ${entry.label}`);
  return text.trim() === "" ? [...shown, ...schedules] : [...verbs, ...runs, ...schedules, ...shown];
}

function Finder({ onChoose, onKeys }: { onChoose: (entry: Entry) => void; onKeys: () => void }) {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const entries = useEntries(text, onKeys);
  const at = Math.min(place, entries.length - 1);
  const current = entries[at];

  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [at]);

  const press = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && entries.length > 0) {
      event.preventDefault();
      setPlace((at + step + entries.length) % entries.length);
    } else if (event.key === "Enter" && current !== undefined) {
      event.preventDefault();
      onChoose(current);
    }
  };

  return (
    <>
      <div className="flex items-center gap-2.5 border-b border-line px-4">
        <Icon name="search" className="text-muted" />
        <input
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={current === undefined ? undefined : `palette-${current.id}`}
          aria-label="Search and commands"
          placeholder="A page, a schedule, a run number; run, enable, disable, pause, cancel…"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setPlace(0);
          }}
          onKeyDown={press}
          className="h-12 w-full bg-transparent text-base outline-none"
        />
        <Kbd keys="escape" />
      </div>
      <div ref={list} id="palette-list" role="listbox" aria-label="Found" className="min-h-0 overflow-y-auto p-1.5">
        {entries.map((entry, index) => (
          <Option
            key={entry.id}
            entry={entry}
            heading={entry.group === entries[index - 1]?.group ? undefined : entry.group}
            selected={index === at}
            onPoint={() => setPlace(index)}
            onChoose={() => onChoose(entry)}
          />
        ))}
        {entries.length === 0 && <p className="px-3 py-6 text-center text-sm text-muted">Nothing found.</p>}
      </div>
    </>
  );
}

interface OptionProps {
  entry: Entry;
  heading?: string;
  selected: boolean;
  onPoint: () => void;
  onChoose: () => void;
}

function Option({ entry, heading, selected, onPoint, onChoose }: OptionProps) {
  return (
    <>
      {heading !== undefined && (
        <div role="presentation" className="px-2.5 pt-2 pb-1 text-xs text-muted">
          {heading}
        </div>
      )}
      <div
        id={`palette-${entry.id}`}
        role="option"
        tabIndex={-1}
        aria-selected={selected}
        onPointerMove={onPoint}
        onClick={onChoose}
        className="flex min-h-9 cursor-default items-center gap-2.5 rounded-md px-2.5 py-1 text-sm aria-selected:bg-accent-soft"
      >
        <Icon name={entry.icon} className="text-muted" />
        <span className="truncate">{entry.label}</span>
        {entry.detail !== undefined && (
          <span className="min-w-0 flex-1 truncate text-xs text-muted">{entry.detail}</span>
        )}
        {entry.keys !== undefined && (
          <span className="ml-auto">
            <Kbd keys={entry.keys} />
          </span>
        )}
      </div>
    </>
  );
}
