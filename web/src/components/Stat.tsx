/** One number and what it counts. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { classes } from "@/components/classes";
import { Icon, type IconName } from "@/components/Icon";
import type { Tone } from "@/components/stateLook";

const TONES: Record<Tone, string> = {
  good: "text-good",
  bad: "text-bad",
  warn: "text-warn",
  info: "text-info",
  wait: "text-wait",
  quiet: "text-muted",
};

interface StatProps {
  label: string;
  value: ReactNode;
  detail?: ReactNode;
  tone?: Tone;
  icon?: IconName;
  /** Where the number leads. */
  to?: string;
  search?: Record<string, string>;
}

export function Stat({ label, value, detail, tone, icon, to, search }: StatProps) {
  const body = (
    <>
      <span className="flex items-center gap-1.5 text-xs text-muted">
        {icon !== undefined && (
          // On a phone the label needs its room.
          <Icon name={icon} size={13} className={classes("max-sm:hidden", tone !== undefined && TONES[tone])} />
        )}
        {label}
      </span>
      <span className={classes("text-xl/7 font-semibold tabular-nums", tone !== undefined && TONES[tone])}>
        {typeof value === "number" ? value.toLocaleString("en-US") : value}
      </span>
      {detail !== undefined && <span className="truncate text-xs text-muted">{detail}</span>}
    </>
  );
  const box = "flex min-w-0 flex-col gap-0.5 rounded-lg border border-line bg-surface px-2 py-2 sm:px-3.5 sm:py-2.5";
  if (to === undefined) return <div className={box}>{body}</div>;
  return (
    <Link to={to} search={search ?? {}} className={classes(box, "transition-colors hover:border-line-strong")}>
      {body}
    </Link>
  );
}
