/** The navigation at the left of a wide screen. */

import { Link } from "@tanstack/react-router";
import { useMe } from "@/api/queries/me";
import { useOverview } from "@/api/queries/overview";
import { Icon } from "@/components/Icon";
import { Logo } from "@/shell/Logo";
import { PLACES, type Place } from "@/shell/navigation";

export function Sidebar() {
  const me = useMe().data;
  return (
    <nav
      aria-label="Pages"
      className="fixed inset-y-0 left-0 z-30 hidden w-52 flex-col border-r border-line bg-surface px-3 py-3.5 md:flex"
    >
      <Link to="/" className="mb-4 rounded-md px-2 py-1">
        <Logo />
      </Link>
      <ul className="flex flex-col gap-px">
        {PLACES.map((place) => (
          <li key={place.to}>
            <PlaceLink place={place} />
          </li>
        ))}
      </ul>
      {me !== undefined && (
        <div className="mt-auto flex min-w-0 items-center gap-2 border-t border-line px-2 pt-3 text-xs text-muted">
          <Icon name="user" size={14} />
          <span className="min-w-0 truncate" title={`${me.who}, ${me.role}`}>
            <span className="font-medium text-ink">{me.who}</span> · {me.role}
          </span>
          <span className="ml-auto">{me.version}</span>
        </div>
      )}
    </nav>
  );
}

function PlaceLink({ place }: { place: Place }) {
  return (
    <Link
      to={place.to}
      aria-label={place.spoken}
      activeOptions={{ exact: place.to === "/", includeSearch: false }}
      className="flex h-8 items-center gap-2.5 rounded-md px-2 text-sm text-muted transition-colors hover:bg-sunken hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:font-medium aria-[current=page]:text-accent"
    >
      <Icon name={place.icon} />
      {place.label}
      {place.to === "/" && <Running />}
      {place.to === "/schedules" && <Broken />}
    </Link>
  );
}

function Running() {
  const count = useOverview().data?.counts.running ?? 0;
  if (count === 0) return null;
  const text = count.toLocaleString("en-US");
  return (
    <span className="ml-auto flex items-center gap-1.5 text-xs text-info tabular-nums" title={`${text} running`}>
      <span className="pulse-dot size-1.5 rounded-full bg-(--state-running)" />
      {text}
      <span className="sr-only">running</span>
    </span>
  );
}

function Broken() {
  const count = useOverview().data?.counts.broken ?? 0;
  if (count === 0) return null;
  const text = count.toLocaleString("en-US");
  return (
    <span className="ml-auto flex items-center gap-1 text-xs text-bad tabular-nums" title={`${text} broken`}>
      <Icon name="alert" size={12} />
      {text}
      <span className="sr-only">broken</span>
    </span>
  );
}
