/** A command to type, with a button that copies it. It names the ledger that this page shows: the same command in another
 *  folder would make one of its own. Where the page is not told which that is, it says what to add. */

import { useMe } from "@/api/queries/me";
import { CopyButton } from "@/components/CopyButton";
import { shellWord, withFlag } from "@/components/shellWord";

export function Command({ text }: { text: string }) {
  const me = useMe().data;
  if (me === undefined) return null;
  const db = me.db ?? null;
  const whole = db === null ? text : withFlag(text, `--db ${shellWord(db)}`);
  return (
    <span className="inline-flex max-w-full flex-wrap items-center gap-x-2 gap-y-1">
      <span className="inline-flex max-w-full items-center gap-1 rounded-md border border-line bg-sunken py-0.5 pr-1 pl-2.5">
        <code tabIndex={0} className="overflow-x-auto font-mono text-xs whitespace-pre text-ink max-sm:break-all max-sm:whitespace-pre-wrap">
          <span aria-hidden="true" className="text-muted select-none">
            ${" "}
          </span>
          {whole}
        </code>
        <CopyButton text={whole} label="Copy the command" />
      </span>
      {db === null && <span className="text-xs text-muted">on the server’s ledger: add its --db</span>}
    </span>
  );
}
