import { useMutation } from "@tanstack/react-query";
import type { RefObject } from "react";
import { CopyButton } from "@/components/CopyButton";
import { controlClass } from "@/components/Field";
import { Icon } from "@/components/Icon";
import { IconButton } from "@/components/IconButton";
import { useProblemToast } from "@/components/Toast";
import { classes } from "@/components/classes";
import { counted } from "@/time/format";
import type { OutputSearch } from "./useOutputSearch";

interface Props {
  search: OutputSearch;
  searchInput: RefObject<HTMLInputElement | null>;
  onStep: (direction: 1 | -1) => void;
  wrap: boolean;
  onWrap: (wrap: boolean) => void;
  stamps: boolean;
  onStamps: (stamps: boolean) => void;
  copyText: () => string;
  onDownload: () => Promise<void>;
  extent: { printed: number; kept: number };
}

/** What can be done with the output; one line on a desk, two on a phone. */
export function OutputToolbar(props: Props) {
  const { search, onStep, extent } = props;
  const searching = search.query !== "";
  const download = useMutation({ mutationFn: props.onDownload, onError: useProblemToast()("The output was not downloaded") });
  return (
    <div className="flex flex-wrap items-center gap-x-2 gap-y-1.5 border-b border-line px-3 py-1.5">
      <h2 className="text-sm font-semibold">Output</h2>
      <span className="text-xs text-muted tabular-nums">{extentText(extent)}</span>
      <div className="ml-auto flex items-center gap-1 max-sm:order-last max-sm:ml-0 max-sm:w-full">
        <div className="relative min-w-0 flex-1 sm:w-52">
          <Icon
            name="search"
            size={13}
            className="pointer-events-none absolute top-1/2 left-2 -translate-y-1/2 text-muted"
          />
          <input
            ref={props.searchInput}
            type="search"
            aria-label="Search the output"
            placeholder="Search the output"
            value={search.query}
            onChange={(event) => search.setQuery(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") search.setQuery("");
              if (event.key !== "Enter") return;
              event.preventDefault();
              onStep(event.shiftKey ? -1 : 1);
            }}
            className={classes(controlClass, "h-7 pr-2 pl-7 [&::-webkit-search-cancel-button]:appearance-none")}
          />
        </div>
        {searching && (
          <>
            <span role="status" className="text-xs whitespace-nowrap text-muted tabular-nums">
              {search.text}
            </span>
            <IconButton icon="chevronDown" className="rotate-180" label="Previous match" onClick={() => onStep(-1)} />
            <IconButton icon="chevronDown" label="Next match" onClick={() => onStep(1)} />
          </>
        )}
      </div>
      <div className="flex items-center gap-0.5 max-sm:ml-auto">
        <Toggle label="Wrap" pressed={props.wrap} onChange={props.onWrap} />
        <Toggle label="Times" pressed={props.stamps} onChange={props.onStamps} />
        <CopyButton text={props.copyText} label="Copy all" />
        <IconButton icon="download" label="Download" busy={download.isPending} onClick={() => download.mutate()} />
      </div>
    </div>
  );
}

function extentText({ printed, kept }: { printed: number; kept: number }): string {
  if (printed === 0) return "";
  if (kept === printed) return counted(printed, "line");
  return `${kept.toLocaleString("en-US")} of ${counted(printed, "line")}, the rest was cut`;
}

function Toggle({
  label,
  pressed,
  onChange,
}: {
  label: string;
  pressed: boolean;
  onChange: (pressed: boolean) => void;
}) {
  return (
    <button
      type="button"
      aria-pressed={pressed}
      onClick={() => onChange(!pressed)}
      className="h-7 rounded-md px-2 text-xs font-medium text-muted hover:bg-sunken hover:text-ink aria-pressed:bg-accent-soft aria-pressed:text-accent"
    >
      {label}
    </button>
  );
}
