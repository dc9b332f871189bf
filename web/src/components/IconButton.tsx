/** A button that is only an icon; its label is read out and shown as a tooltip. */

import type { ComponentProps, MouseEvent } from "react";
import { classes } from "@/components/classes";
import { Icon, type IconName } from "@/components/Icon";
import { Tooltip } from "@/components/Tooltip";

export interface IconButtonProps extends Omit<ComponentProps<"button">, "children"> {
  icon: IconName;
  label: string;
  /** Why it cannot be used; undefined when it can. */
  why?: string;
  /** Something is under way: the button waits. */
  busy?: boolean;
  tone?: "muted" | "danger";
}

export function IconButton(props: IconButtonProps) {
  const { icon, label, why, busy = false, tone = "muted", className, onClick, ...rest } = props;
  const blocked = why !== undefined || busy;
  const guarded = (event: MouseEvent<HTMLButtonElement>): void => {
    if (blocked) event.preventDefault();
    else onClick?.(event);
  };
  return (
    <Tooltip text={why ?? label}>
      <button
        type="button"
        {...rest}
        aria-label={label}
        aria-disabled={blocked || undefined}
        aria-busy={busy || undefined}
        onClick={guarded}
        className={classes(
          "inline-flex size-7 shrink-0 items-center justify-center rounded-md text-muted transition-colors pointer-coarse:size-9",
          "hover:bg-sunken aria-disabled:cursor-not-allowed aria-disabled:opacity-50",
          tone === "danger" ? "hover:text-bad" : "hover:text-ink",
          className,
        )}
      >
        <Icon name={icon} />
      </button>
    </Tooltip>
  );
}
