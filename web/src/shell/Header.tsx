/** The line above the page: search, zone, theme, keys. */

import { Link } from "@tanstack/react-router";
import { useOpenIncidents } from "@/api/queries/incidents";
import { buttonClass } from "@/components/Button";
import { classes } from "@/components/classes";
import { Icon, type IconName } from "@/components/Icon";
import { IconButton } from "@/components/IconButton";
import { Kbd } from "@/components/Kbd";
import { Menu } from "@/components/Menu";
import { Logo } from "@/shell/Logo";
import { type Theme, THEMES, theme } from "@/state/theme";
import { browserZone, useZone, ZONE_LABELS, ZONES } from "@/state/zone";

interface HeaderProps {
  onSearch: () => void;
  onKeys: () => void;
}

export function Header({ onSearch, onKeys }: HeaderProps) {
  return (
    <header className="sticky top-0 z-20 flex h-12 items-center gap-1.5 border-b border-line bg-canvas/90 px-4 backdrop-blur md:px-6">
      <Link to="/" className="rounded-md md:hidden">
        <Logo />
      </Link>
      <button
        type="button"
        onClick={onSearch}
        className="ml-auto flex size-9 items-center justify-center gap-2 rounded-md text-sm text-muted hover:text-ink md:ml-0 md:h-8 md:w-72 md:justify-start md:border md:border-line md:bg-surface md:px-2.5 md:hover:border-line-strong"
      >
        <Icon name="search" size={14} />
        <span className="sr-only md:not-sr-only">Search and commands</span>
        <span className="ml-auto hidden md:inline">
          <Kbd keys="mod+k" />
        </span>
      </button>
      <div className="flex items-center gap-1 md:ml-auto">
        <Bell />
        <ZoneMenu />
        <ThemeMenu />
        <IconButton
          icon="keyboard"
          label="Keyboard shortcuts"
          onClick={onKeys}
          className="max-sm:hidden pointer-coarse:hidden"
        />
      </div>
    </header>
  );
}

/** How many incidents are open, and the way to them. */
function Bell() {
  const open = useOpenIncidents().data?.open ?? 0;
  const words = open === 1 ? "1 open incident" : `${open.toLocaleString("en-US")} open incidents`;
  return (
    <Link
      to="/incidents"
      aria-label={open === 0 ? "No open incidents" : words}
      title={open === 0 ? "No open incidents" : words}
      className={buttonClass("ghost", "small")}
    >
      <span className={classes("flex items-center gap-1.5", open > 0 && "text-bad")}>
        <Icon name="bell" size={14} />
        {open > 0 && <span className="tabular-nums">{open > 99 ? "99+" : open}</span>}
      </span>
    </Link>
  );
}

function ZoneMenu() {
  const { choice, set } = useZone();
  const names = { browser: browserZone(), schedule: "Schedule's zone", utc: "UTC" };
  return (
    <Menu
      trigger={
        <button type="button" className={buttonClass("ghost", "small")} aria-label={`Times are in: ${names[choice]}`}>
          <Icon name="clock" size={14} />
          <span className="max-w-40 truncate max-sm:hidden">{names[choice]}</span>
          <Icon name="chevronDown" size={12} />
        </button>
      }
      items={[
        { heading: "Show times in" },
        ...ZONES.map((zone) => ({
          label: zone === "browser" ? `${ZONE_LABELS.browser} (${browserZone()})` : ZONE_LABELS[zone],
          checked: zone === choice,
          onSelect: () => set(zone),
        })),
      ]}
    />
  );
}

export const THEME_LOOK: Record<Theme, { label: string; icon: IconName }> = {
  system: { label: "Same as system", icon: "monitor" },
  light: { label: "Light", icon: "sun" },
  dark: { label: "Dark", icon: "moon" },
};

function ThemeMenu() {
  const chosen = theme.use();
  return (
    <Menu
      trigger={<IconButton icon={THEME_LOOK[chosen].icon} label={`Theme: ${THEME_LOOK[chosen].label}`} />}
      items={THEMES.map((each) => ({
        label: THEME_LOOK[each].label,
        checked: each === chosen,
        onSelect: () => theme.set(each),
      }))}
    />
  );
}
