/** A small word on a tinted ground. */

import type { ReactNode } from "react";
import { Icon, type IconName } from "@/components/Icon";
import type { Tone } from "@/components/stateLook";

export type BadgeTone = Tone | "accent";

const TONES: Record<BadgeTone, string> = {
  good: "bg-good-soft text-good",
  bad: "bg-bad-soft text-bad",
  warn: "bg-warn-soft text-warn",
  info: "bg-info-soft text-info",
  wait: "bg-wait-soft text-wait",
  quiet: "bg-quiet-soft text-quiet",
  accent: "bg-accent-soft text-accent",
};

interface BadgeProps {
  tone?: BadgeTone;
  icon?: IconName;
  title?: string;
  children: ReactNode;
}

export function Badge({ tone = "quiet", icon, title, children }: BadgeProps) {
  return (
    <span
      title={title}
      className={`inline-flex max-w-full items-center gap-1 rounded-md px-1.5 py-px text-xs font-medium whitespace-nowrap ${TONES[tone]}`}
    >
      {icon !== undefined && <Icon name={icon} size={12} />}
      <span className="truncate">{children}</span>
    </span>
  );
}
