/** A box with a title. */

import { type ReactNode, useId } from "react";
import { classes } from "@/components/classes";

interface CardProps {
  title?: ReactNode;
  /** A small word beside the title, such as a count. */
  aside?: ReactNode;
  actions?: ReactNode;
  /** Rows that go to the edges of the box. */
  flush?: boolean;
  className?: string;
  children: ReactNode;
}

export function Card({ title, aside, actions, flush = false, className, children }: CardProps) {
  const id = useId();
  return (
    <section
      aria-labelledby={title === undefined ? undefined : id}
      className={classes("min-w-0 rounded-lg border border-line bg-surface", className)}
    >
      {(title !== undefined || actions !== undefined) && (
        <header className="flex min-h-11 flex-wrap items-center gap-x-2 gap-y-1 border-b border-line px-4 py-1.5">
          <h2 id={id} className="text-sm font-semibold">
            {title}
          </h2>
          {aside !== undefined && <span className="text-xs text-muted">{aside}</span>}
          {actions !== undefined && <div className="ml-auto flex items-center gap-1.5">{actions}</div>}
        </header>
      )}
      <div className={flush ? undefined : "p-4"}>{children}</div>
    </section>
  );
}
