/** Nothing here yet: why, and what to do about it. */

import type { ReactNode } from "react";
import { Command } from "@/components/Command";
import { Icon, type IconName } from "@/components/Icon";

interface EmptyStateProps {
  icon?: IconName;
  title: string;
  text?: ReactNode;
  /** What to type to change it. */
  command?: string;
  action?: ReactNode;
}

export function EmptyState({ icon, title, text, command, action }: EmptyStateProps) {
  return (
    <div className="flex flex-col items-center gap-2 px-6 py-10 text-center">
      {icon !== undefined && (
        <span className="mb-1 flex size-10 items-center justify-center rounded-full bg-quiet-soft text-quiet">
          <Icon name={icon} size={18} />
        </span>
      )}
      <p className="text-sm font-medium">{title}</p>
      {text !== undefined && <p className="max-w-md text-sm text-balance text-muted">{text}</p>}
      {command !== undefined && (
        <div className="mt-1 max-w-full">
          <Command text={command} />
        </div>
      )}
      {action !== undefined && <div className="mt-2 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  );
}
