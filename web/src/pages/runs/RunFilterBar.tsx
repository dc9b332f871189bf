/** State, trigger, names: all of it is in the address. */

import { useCallback, useState } from "react";
import { useLanes } from "@/api/queries/lanes";
import { useProjects } from "@/api/queries/projects";
import { useTasks } from "@/api/queries/tasks";
import { Button } from "@/components/Button";
import { classes } from "@/components/classes";
import { SearchField } from "@/components/SearchField";
import { Select } from "@/components/Select";
import { STATES } from "@/components/stateLook";
import { SINCE } from "@/state/since";
import { CAUSES, causeText } from "./causes";
import { NO_FILTERS, type RunFilters, TRIGGERS, isFiltered } from "./runFilters";

interface Props {
  filters: RunFilters;
  onChange: (changes: Partial<RunFilters>) => void;
}

const namesOf = (items: readonly { name: string }[] | undefined, chosen: string): string[] => [
  ...new Set([...(items ?? []).map((item) => item.name), chosen].filter(Boolean)),
];

const WHY = CAUSES.map((value) => ({ value, label: causeText(value) }));
const REST = ["since", "cause", "task", "project", "lane", "session"] as const;
const isRest = (name: string): boolean => REST.some((each) => each === name);

export function RunFilterBar({ filters, onChange }: Props) {
  const tasks = namesOf(useTasks().data?.items, filters.task);
  const projects = namesOf(useProjects().data?.items, filters.project);
  const lanes = namesOf(useLanes().data?.items, filters.lane);
  const states = [...new Set([...STATES, filters.state].filter(Boolean))];
  // A phone shows what is asked most; the rest comes when it is wanted, or is in use.
  const [opened, setOpened] = useState(false);
  const showsAll = opened || REST.some((name) => filters[name] !== "");
  const byName = useCallback((q: string) => onChange({ q }), [onChange]);
  const bySession = useCallback((session: string) => onChange({ session }), [onChange]);
  const choices = [
    { name: "state", label: "State", any: "Any state", options: states },
    { name: "cause", label: "Cause", any: "Any cause", options: WHY },
    { name: "trigger", label: "Trigger", any: "Any trigger", options: TRIGGERS },
    { name: "since", label: "Due", any: "Any time", options: SINCE.slice(1) },
    { name: "task", label: "Task", any: "Any task", options: tasks },
    { name: "project", label: "Project", any: "Any project", options: projects },
    { name: "lane", label: "Lane", any: "Any lane", options: lanes },
  ] as const;
  return (
    <div role="search" className="mb-3 flex flex-wrap items-center gap-2">
      <SearchField label="Search runs by name" value={filters.q} onChange={byName} />
      {filters.schedule !== "" && (
        <Button icon="cross" onClick={() => onChange({ schedule: "" })}>
          <span className="max-w-48 truncate">Schedule {filters.schedule}</span>
        </Button>
      )}
      {choices.map(({ name, label, any, options }) => (
        <Select
          key={name}
          label={label}
          hideLabel
          value={filters[name]}
          onChange={(value) => onChange({ [name]: value })}
          options={[{ value: "", label: any }, ...options]}
          className={classes("min-w-28 flex-1 sm:max-w-36", isRest(name) && !showsAll && "max-sm:hidden")}
        />
      ))}
      <div className={classes("w-full sm:w-auto", !showsAll && "max-sm:hidden")}>
        <SearchField label="Session (full key)" slash={false} value={filters.session} onChange={bySession} />
      </div>
      {!showsAll && (
        <Button variant="ghost" className="sm:hidden" onClick={() => setOpened(true)}>
          More filters
        </Button>
      )}
      {isFiltered(filters) && (
        <Button variant="ghost" icon="cross" onClick={() => onChange(NO_FILTERS)}>
          Clear
        </Button>
      )}
    </div>
  );
}
