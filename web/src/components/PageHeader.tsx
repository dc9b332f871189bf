/** The title of a page, where it stands, and what can be done with it. */

import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { Icon } from "@/components/Icon";

interface PageHeaderProps {
  title: string;
  /** Shown instead of the title's text: a name with a badge. */
  heading?: ReactNode;
  description?: ReactNode;
  actions?: ReactNode;
  /** The pages above this one. */
  crumbs?: { label: string; to: string }[];
}

export function PageHeader({ title, heading, description, actions, crumbs = [] }: PageHeaderProps) {
  useEffect(() => {
    document.title = `${title} · Ostinato`;
  }, [title]);
  return (
    <header className="mb-4 flex flex-wrap items-end gap-x-4 gap-y-3">
      <div className="min-w-0 flex-1 basis-44">
        {crumbs.length > 0 && (
          <nav aria-label="Where you are" className="mb-0.5 flex flex-wrap items-center gap-1 text-xs text-muted">
            {crumbs.map((crumb) => (
              <span key={crumb.to} className="inline-flex min-w-0 items-center gap-1">
                <Link to={crumb.to} className="min-w-0 rounded hover:text-ink hover:underline">
                  {crumb.label}
                </Link>
                <Icon name="chevronRight" size={12} />
              </span>
            ))}
          </nav>
        )}
        <h1 className="text-xl/7 font-semibold tracking-tight break-words">{heading ?? title}</h1>
        {description !== undefined && <div className="text-sm text-muted">{description}</div>}
      </div>
      {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </header>
  );
}
