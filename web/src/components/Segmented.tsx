/** One of two to four, all of them in sight. */

import { ToggleGroup } from "radix-ui";
import { Icon, type IconName } from "@/components/Icon";

interface SegmentedProps<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; label: string; icon?: IconName }[];
  onChange: (value: T) => void;
}

export function Segmented<T extends string>({ label, value, options, onChange }: SegmentedProps<T>) {
  const choose = (next: string): void => {
    // Pressing the chosen one again gives "": something is always chosen.
    const found = options.find((option) => option.value === next);
    if (found !== undefined) onChange(found.value);
  };
  return (
    <ToggleGroup.Root
      type="single"
      value={value}
      onValueChange={choose}
      aria-label={label}
      className="inline-flex w-fit rounded-md border border-line bg-sunken p-0.5"
    >
      {options.map((option) => (
        <ToggleGroup.Item
          key={option.value}
          value={option.value}
          className="inline-flex h-6.5 items-center gap-1.5 rounded px-2.5 text-xs font-medium whitespace-nowrap text-muted hover:text-ink data-[state=on]:bg-surface data-[state=on]:text-ink data-[state=on]:shadow-sm pointer-coarse:h-8"
        >
          {option.icon !== undefined && <Icon name={option.icon} size={13} />}
          {option.label}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}
