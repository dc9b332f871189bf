import { useProjects } from "@/api/queries/projects";
import { Button } from "@/components/Button";
import { SearchField } from "@/components/SearchField";
import { Select } from "@/components/Select";
import { type Filters, SORTS, STATES, isFiltered } from "./filters";

interface Props {
  filters: Filters;
  onChange: (changes: Partial<Filters>) => void;
}

const OWNERS = ["user", "code", "crontab"];

/** What somebody paused is off: it is not looked for under the state of this name. */
const LABELS: Partial<Record<string, string>> = {
  paused: "paused by its budget",
  running: "running or queued",
  failing: "last failed",
};
const stateOption = (state: string) => ({ value: state, label: LABELS[state] ?? state });

/** Search, project, state, owner and order; all of it is in the address. */
export function FilterBar({ filters, onChange }: Props) {
  const projects = useProjects().data?.items ?? [];
  const names = [...new Set([...projects.map((project) => project.name), filters.project].filter(Boolean))];
  const owners = [...new Set([...OWNERS, filters.owner].filter(Boolean))];
  return (
    <div role="search" className="mb-3 flex flex-wrap items-center gap-2">
      <SearchField label="Search schedules" value={filters.q} onChange={(q) => onChange({ q })} />
      <Select
        label="State"
        hideLabel
        value={filters.state}
        onChange={(state) => onChange({ state })}
        options={[{ value: "", label: "Any state" }, ...STATES.map(stateOption)]}
        className="min-w-28 flex-1 sm:flex-none"
      />
      <Select
        label="Project"
        hideLabel
        value={filters.project}
        onChange={(project) => onChange({ project })}
        options={[{ value: "", label: "Any project" }, ...names]}
        className="min-w-28 flex-1 sm:flex-none"
      />
      <Select
        label="Owner"
        hideLabel
        value={filters.owner}
        onChange={(owner) => onChange({ owner })}
        options={[
          { value: "", label: "Any owner" },
          ...owners.map((owner) => ({ value: owner, label: `owner ${owner}` })),
        ]}
        className="min-w-28 flex-1 sm:flex-none"
      />
      <Select
        label="Order"
        hideLabel
        value={SORTS.some((sort) => sort.value === filters.sort) ? filters.sort : ""}
        onChange={(sort) => onChange({ sort: sort === "" ? filters.sort : sort })}
        options={
          SORTS.some((sort) => sort.value === filters.sort)
            ? SORTS
            : [{ value: "", label: `By ${filters.sort.replace(/^-(.*)/, "$1, descending")}` }, ...SORTS]
        }
        className="min-w-28 flex-1 sm:flex-none"
      />
      {isFiltered(filters) && (
        <Button variant="ghost" icon="cross" onClick={() => onChange({ q: "", state: "", project: "", owner: "" })}>
          Clear
        </Button>
      )}
    </div>
  );
}
