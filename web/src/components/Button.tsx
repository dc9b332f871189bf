/** A button. With `why` it cannot be used and says why in a tooltip, but keyboards can still reach it. */

import type { ComponentProps, MouseEvent } from "react";
import { classes } from "@/components/classes";
import { Icon, type IconName } from "@/components/Icon";
import { Tooltip } from "@/components/Tooltip";

export type ButtonVariant = "primary" | "secondary" | "ghost" | "danger";

const LOOK: Record<ButtonVariant, string> = {
  primary: "bg-accent text-accent-ink hover:bg-accent-hover",
  secondary: "border border-line-strong bg-surface text-ink hover:bg-sunken",
  ghost: "text-muted hover:bg-sunken hover:text-ink",
  danger: "bg-danger text-danger-ink hover:bg-danger-hover",
};

export const buttonClass = (variant: ButtonVariant = "secondary", size: "small" | "medium" = "medium"): string =>
  classes(
    "inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap transition-colors select-none",
    "disabled:cursor-default disabled:opacity-50 aria-disabled:cursor-not-allowed aria-disabled:opacity-50",
    size === "small" ? "h-7 px-2 text-xs" : "h-8 px-3 text-sm pointer-coarse:h-9",
    LOOK[variant],
  );

export interface ButtonProps extends ComponentProps<"button"> {
  variant?: ButtonVariant;
  size?: "small" | "medium";
  icon?: IconName;
  /** Something is under way: the button waits. */
  busy?: boolean;
  /** Why it cannot be used; undefined when it can. */
  why?: string;
}

export function Button({ variant, size, icon, busy = false, why, className, children, onClick, ...rest }: ButtonProps) {
  const blocked = why !== undefined || busy;
  const guarded = (event: MouseEvent<HTMLButtonElement>): void => {
    if (blocked) event.preventDefault();
    else onClick?.(event);
  };
  return (
    <Tooltip text={why}>
      <button
        type="button"
        {...rest}
        aria-disabled={blocked || undefined}
        aria-busy={busy || undefined}
        onClick={guarded}
        className={classes(buttonClass(variant, size), className)}
      >
        {busy ? <Spinner /> : icon !== undefined && <Icon name={icon} size={14} />}
        {children}
      </button>
    </Tooltip>
  );
}

function Spinner() {
  return (
    <svg aria-hidden="true" width={14} height={14} viewBox="0 0 16 16" fill="none" className="animate-spin">
      <circle cx="8" cy="8" r="6" stroke="currentColor" strokeOpacity="0.3" strokeWidth="2" />
      <path d="M14 8a6 6 0 0 0-6-6" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
    </svg>
  );
}
