/** The navigation of a phone: a bar within reach of the thumb. */

import { Link, useNavigate } from "@tanstack/react-router";
import { Icon } from "@/components/Icon";
import { Menu } from "@/components/Menu";
import { PLACES } from "@/shell/navigation";

const ITEM =
  "flex h-14 w-full flex-col items-center justify-center gap-0.5 text-2xs text-muted aria-[current=page]:font-medium aria-[current=page]:text-accent";

export function BottomBar() {
  const navigate = useNavigate();
  const more = PLACES.filter((place) => place.main !== true);
  return (
    <nav
      aria-label="Pages"
      className="fixed inset-x-0 bottom-0 z-30 flex border-t border-line bg-surface pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      {PLACES.filter((place) => place.main === true).map((place) => (
        <Link
          key={place.to}
          to={place.to}
          activeOptions={{ exact: place.to === "/", includeSearch: false }}
          className={ITEM}
        >
          <Icon name={place.icon} size={18} />
          {place.label}
        </Link>
      ))}
      <Menu
        trigger={
          <button type="button" className={ITEM}>
            <Icon name="menu" size={18} />
            More
          </button>
        }
        items={more.map(({ label, icon, to }) => ({ label, icon, onSelect: () => void navigate({ to }) }))}
      />
    </nav>
  );
}
