/** Who is logged in, the theme and the zone of this browser. */

import { hasHostLogin } from "@/api/mount";
import { useLogout, useMe } from "@/api/queries/me";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Kbd } from "@/components/Kbd";
import { Segmented } from "@/components/Segmented";
import { Switch } from "@/components/Switch";
import { useProblemToast } from "@/components/Toast";
import { THEME_LOOK } from "@/shell/Header";
import { characterKeys } from "@/state/shortcuts";
import { THEMES, theme } from "@/state/theme";
import { browserZone, useZone, ZONE_LABELS, ZONES } from "@/state/zone";

const MAY = {
  viewer: "may read everything except tokens and the audit log",
  operator: "may also run, stop, enable and change, but not create or change shell and agent work",
  admin: "may do everything",
};

export function PersonalTab() {
  const me = useMe().data;
  const logout = useLogout();
  const problem = useProblemToast();
  const chosen = theme.use();
  const zone = useZone();
  const keys = characterKeys.use();
  return (
    <div className="grid max-w-3xl gap-4">
      {me !== undefined && (
        <Card
          title="Logged in"
          actions={
            hasHostLogin() ? undefined : (
              <Button
                icon="logout"
                size="small"
                busy={logout.isPending}
                onClick={() => logout.mutate(undefined, { onError: problem("You could not be logged out") })}
              >
                Log out
              </Button>
            )
          }
        >
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-1.5 text-sm">
            <dt className="text-muted">Name</dt>
            <dd className="font-medium break-all">{me.who}</dd>
            <dt className="text-muted">Role</dt>
            <dd>
              <Badge tone="accent">{me.role}</Badge> <span className="text-muted">{MAY[me.role]}</span>
            </dd>
            <dt className="text-muted">Server's zone</dt>
            <dd>{me.zone}</dd>
            <dt className="text-muted">Version</dt>
            <dd>Ostinato {me.version}</dd>
          </dl>
        </Card>
      )}
      <Card title="This browser">
        <div className="flex flex-col gap-5">
          <div className="flex flex-col gap-1.5">
            <span className="text-sm font-medium">Theme</span>
            <Segmented
              label="Theme"
              value={chosen}
              options={THEMES.map((value) => ({ value, ...THEME_LOOK[value] }))}
              onChange={theme.set}
            />
          </div>
          <div className="flex flex-col gap-1.5">
            <span className="text-sm font-medium">Times</span>
            <Segmented
              label="Show times in"
              value={zone.choice}
              options={ZONES.map((value) => ({ value, label: ZONE_LABELS[value] }))}
              onChange={zone.set}
            />
            <span className="text-xs text-muted">
              The browser's zone is {browserZone()}. Hover over a time to see it in full.
            </span>
          </div>
          <div className="flex flex-col gap-1.5">
            <span className="text-sm font-medium">Keyboard</span>
            <span className="flex items-center gap-2 text-sm">
              <Switch
                checked={keys === "on"}
                onChange={(on) => characterKeys.set(on ? "on" : "off")}
                label="Single-character shortcuts"
              />
              Single-character shortcuts, such as <Kbd keys="n" /> or <Kbd keys="g s" />
            </span>
            <span className="text-xs text-muted">
              Switch them off if you use speech input or press keys by accident. The palette still works.
            </span>
          </div>
        </div>
      </Card>
    </div>
  );
}
