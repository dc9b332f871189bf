/** The list of keys that work on this page. */

import { Dialog } from "@/components/Dialog";
import { Kbd } from "@/components/Kbd";
import { characterKeys, listShortcuts } from "@/state/shortcuts";

interface KeysDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

export function KeysDialog({ open, onOpenChange }: KeysDialogProps) {
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="Keyboard shortcuts"
      description={`Single-character shortcuts are ${characterKeys.get()}; you can switch them in the settings.`}
      wide
    >
      {open && <Groups />}
    </Dialog>
  );
}

function Groups() {
  const groups = Map.groupBy(listShortcuts(), (shortcut) => shortcut.group);
  return (
    <div className="grid gap-x-8 gap-y-5 sm:grid-cols-2">
      {[...groups].map(([group, shortcuts]) => (
        <section key={group}>
          <h3 className="mb-1.5 text-xs font-medium text-muted">{group}</h3>
          <dl className="flex flex-col gap-1.5">
            {shortcuts.map((shortcut) => (
              <div key={shortcut.keys} className="flex items-center justify-between gap-4 text-sm">
                <dt>{shortcut.label}</dt>
                <dd>
                  <Kbd keys={shortcut.keys} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  );
}
