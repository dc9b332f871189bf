/** Puts a text on the clipboard and says so. */

import { useEffect, useState } from "react";
import { IconButton } from "@/components/IconButton";

/** The clipboard is closed on plain http that is not loopback: a selection that is copied still works there. */
async function copy(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

interface CopyButtonProps {
  /** A function for what is long and only made when it is wanted. */
  text: string | (() => string);
  label?: string;
}

export function CopyButton({ text, label = "Copy" }: CopyButtonProps) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return undefined;
    const timer = setTimeout(() => setSaid(null), 2000);
    return () => clearTimeout(timer);
  }, [said]);
  const press = (): void => {
    copy(typeof text === "string" ? text : text()).then(
      () => setSaid("Copied"),
      () => setSaid("The browser does not allow copying here"),
    );
  };
  return (
    <>
      <IconButton icon={said === "Copied" ? "check" : "copy"} label={said ?? label} onClick={press} />
      <span role="status" className="sr-only">
        {said}
      </span>
    </>
  );
}
