/** A command to type, with a button that copies it. */

import { CopyButton } from "@/components/CopyButton";

export function Command({ text }: { text: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-1 rounded-md border border-line bg-sunken py-0.5 pr-1 pl-2.5">
      <code className="overflow-x-auto font-mono text-xs whitespace-pre text-ink max-sm:whitespace-pre-wrap">
        <span aria-hidden="true" className="text-muted select-none">
          ${" "}
        </span>
        {text}
      </code>
      <CopyButton text={text} label="Copy the command" />
    </span>
  );
}
