/** A line across the page that matters now. */

import type { ReactNode } from "react";
import { classes } from "@/components/classes";
import { Icon, type IconName } from "@/components/Icon";

const LOOK = {
  bad: { icon: "alert", box: "border-bad/35 bg-bad-soft", ink: "text-bad" },
  warn: { icon: "alert", box: "border-warn/35 bg-warn-soft", ink: "text-warn" },
  info: { icon: "info", box: "border-info/35 bg-info-soft", ink: "text-info" },
} as const satisfies Record<string, { icon: IconName; box: string; ink: string }>;

interface BannerProps {
  tone?: keyof typeof LOOK;
  title: string;
  children?: ReactNode;
  /** What changes by itself, such as an age: it is shown, but not read out again and again. */
  aside?: ReactNode;
  actions?: ReactNode;
}

export function Banner({ tone = "info", title, children, aside, actions }: BannerProps) {
  const { icon, box, ink } = LOOK[tone];
  return (
    <div className={classes("flex flex-wrap items-start gap-x-3 gap-y-2 rounded-lg border px-4 py-3", box)}>
      <Icon name={icon} className={`mt-1 ${ink}`} />
      <div className="min-w-0 flex-1 basis-60">
        <div role={tone === "info" ? "status" : "alert"}>
          <p className={`max-h-40 overflow-y-auto text-sm font-semibold ${ink}`}>{title}</p>
          {children !== undefined && <div className="text-sm text-ink">{children}</div>}
        </div>
        {aside !== undefined && <div className="text-xs text-muted">{aside}</div>}
      </div>
      {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </div>
  );
}
