import { Icon } from "@/components/Icon";
import { classes } from "@/components/classes";
import { COLUMNS } from "./ScheduleRow";
import { sortAfterClick } from "./filters";

interface Props {
  sort: string;
  onSort: (sort: string) => void;
  loaded: number;
  selected: number;
  onSelectAll: (all: boolean) => void;
}

/** The names of the columns; a click sorts by one. On a phone only the box that selects all stays. */
export function ListHead({ sort, onSort, loaded, selected, onSelectAll }: Props) {
  const all = selected > 0 && selected >= loaded;
  const head = (column: "name" | "last" | "next", label: string) => {
    const chosen = sort.replace("-", "") === column;
    return (
      <button
        type="button"
        aria-label={`Sort by ${label.toLowerCase()}`}
        aria-pressed={chosen}
        onClick={() => onSort(sortAfterClick(sort, column))}
        className={classes(
          "inline-flex items-center gap-1 rounded text-xs font-medium hover:text-ink",
          chosen ? "text-ink" : "text-muted",
        )}
      >
        {label}
        {chosen && <Icon name="chevronDown" size={12} className={sort.startsWith("-") ? "" : "rotate-180"} />}
      </button>
    );
  };
  return (
    <div
      className={classes(
        "flex items-center gap-x-3 border-b border-line px-4 py-2 text-xs text-muted lg:grid lg:gap-x-5",
        COLUMNS,
      )}
    >
      <input
        type="checkbox"
        aria-label="Select all loaded schedules"
        checked={all}
        ref={(box) => {
          if (box !== null) box.indeterminate = selected > 0 && !all;
        }}
        onChange={(event) => onSelectAll(event.target.checked)}
        className="size-4 accent-accent [grid-area:check]"
      />
      <span className="lg:hidden">Select all</span>
      <span className="max-lg:hidden">{head("name", "Name")}</span>
      <span className="font-medium max-lg:hidden">Last 60 runs</span>
      <span className="max-lg:hidden">{head("last", "Last")}</span>
      <span className="max-lg:hidden">{head("next", "Next")}</span>
      <span className="text-right font-medium max-lg:hidden">On</span>
    </div>
  );
}
