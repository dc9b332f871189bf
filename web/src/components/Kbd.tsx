/** A key, or keys one after the other: "g s", "mod+k". */

import { isMac } from "@/state/shortcuts";

const NAMES: Record<string, string> = { escape: "Esc", enter: "Enter", arrowup: "↑", arrowdown: "↓", arrowleft: "←", arrowright: "→" };

const shown = (key: string): string => {
  const plain = key.replace("mod+", isMac ? "⌘" : "Ctrl ");
  return NAMES[plain] ?? (key.startsWith("mod+") ? plain.toUpperCase().replace("CTRL", "Ctrl") : plain);
};

export function Kbd({ keys }: { keys: string }) {
  return (
    <span className="inline-flex gap-1">
      {keys.split(" ").map((key, place) => (
        <kbd
          key={place}
          className="inline-flex h-5 min-w-5 items-center justify-center rounded border border-line-strong bg-sunken px-1 font-sans text-2xs text-muted"
        >
          {shown(key)}
        </kbd>
      ))}
    </span>
  );
}
