/** On and off. */

import { Switch as Radix } from "radix-ui";
import { Tooltip } from "@/components/Tooltip";

interface SwitchProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  label: string;
  why?: string;
}

export function Switch({ checked, onChange, label, why }: SwitchProps) {
  return (
    // Styled by aria-checked: the tooltip has a data-state of its own, which wins.
    <Tooltip text={why}>
      <Radix.Root
        checked={checked}
        onCheckedChange={(next) => why === undefined && onChange(next)}
        aria-label={label}
        aria-disabled={why !== undefined || undefined}
        className="relative inline-flex h-5 w-9 shrink-0 items-center rounded-full border border-control bg-sunken transition-colors aria-disabled:cursor-not-allowed aria-disabled:opacity-50 aria-checked:border-accent aria-checked:bg-accent"
      >
        <Radix.Thumb className="block size-3.5 translate-x-0.5 rounded-full bg-control transition-transform data-[state=checked]:translate-x-[1.125rem] data-[state=checked]:bg-accent-ink" />
      </Radix.Root>
    </Tooltip>
  );
}
