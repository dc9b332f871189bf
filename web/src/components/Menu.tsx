/** A menu of actions behind a button. */

import { DropdownMenu as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { classes } from "@/components/classes";
import { Icon, type IconName } from "@/components/Icon";

export interface MenuAction {
  label: string;
  icon?: IconName;
  onSelect: () => void;
  danger?: boolean;
  /** Why it cannot be chosen. */
  why?: string;
  /** A tick before it. */
  checked?: boolean;
  /** For which widths it is there. */
  className?: string;
}

export type MenuItem = MenuAction | "line" | { heading: string };

interface MenuProps {
  /** A Button or IconButton. */
  trigger: ReactNode;
  items: MenuItem[];
  align?: "start" | "end";
}

export function Menu({ trigger, items, align = "end" }: MenuProps) {
  return (
    // Not modal: the page behind may still be scrolled and read.
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="enter z-50 max-w-80 min-w-44 rounded-lg border border-line bg-raised p-1 shadow-raised"
        >
          {items.map((item, place) => (
            <Row key={typeof item === "string" || "heading" in item ? place : item.label} item={item} />
          ))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

const ITEM =
  "flex min-h-8 cursor-default items-center gap-2 rounded-md px-2 py-1 text-sm outline-none select-none pointer-coarse:min-h-10 data-[highlighted]:bg-accent-soft";

function Row({ item }: { item: MenuItem }) {
  if (item === "line") return <Radix.Separator className="my-1 h-px bg-line" />;
  if ("heading" in item) return <Radix.Label className="px-2 py-1 text-xs text-muted">{item.heading}</Radix.Label>;
  const given = {
    disabled: item.why !== undefined,
    onSelect: item.onSelect,
    className: classes(ITEM, item.danger === true && "text-bad", item.className),
  };
  // Only what cannot be chosen is dimmed: the reason must be readable.
  const dimmed = item.why !== undefined && "opacity-60";
  const words = (
    <span className="min-w-0">
      <span className={classes("block", dimmed)}>{item.label}</span>
      {item.why !== undefined && <span className="block text-xs text-muted">{item.why}</span>}
    </span>
  );
  if (item.checked === undefined) {
    return (
      <Radix.Item {...given}>
        {item.icon !== undefined && <Icon name={item.icon} size={14} className={classes("text-muted", dimmed)} />}
        {words}
      </Radix.Item>
    );
  }
  return (
    <Radix.CheckboxItem {...given} checked={item.checked}>
      <span className="w-4">{item.checked && <Icon name="check" size={14} />}</span>
      {words}
    </Radix.CheckboxItem>
  );
}
