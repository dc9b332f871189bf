/** The head of a session: what is under way, what it has used, and how full its context is. */

import type { ReactNode } from "react";
import type { Session } from "@/api/types";
import { Ago } from "@/components/Time";
import { totalText } from "@/pages/run/Totals";
import { counted } from "@/time/format";

const FULL = 0.6;

export function SessionHead({ session }: { session: Session }) {
  const { running, queued, throttled, max_concurrent, oldest_at, sent_at, stopped_at } = session;
  return (
    <dl className="flex flex-wrap gap-x-6 gap-y-1.5 rounded-lg border border-line bg-surface px-4 py-2 text-sm sm:gap-x-8">
      <Fact name="Running">
        {running}{" "}
        {throttled ? (
          <span className="text-warn">(throttled to one at a time: its context is nearly full)</span>
        ) : (
          <span className="text-muted max-sm:hidden">(at most {max_concurrent} at once)</span>
        )}
      </Fact>
      <Fact name="Queued">
        {queued}
        {oldest_at !== null && (
          <span className="text-muted max-sm:hidden">
            , the oldest sent <Ago at={oldest_at} />
          </span>
        )}
      </Fact>
      <Fact name="Last sent">
        <Ago at={sent_at} />
      </Fact>
      {stopped_at !== null && (
        <Fact name="Stopped">
          <span title="Messages that were sent before that do not start.">
            <Ago at={stopped_at} />
          </span>
        </Fact>
      )}
      <Used session={session} />
      <Context session={session} />
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="break-words tabular-nums">{children}</dd>
    </div>
  );
}

function Used({ session }: { session: Session }) {
  const { cost_usd, tokens_in, tokens_out, turns } = session;
  if (cost_usd === 0 && tokens_in === 0 && tokens_out === 0 && turns === 0) return null;
  const tokens = [`${tokens_in.toLocaleString("en-US")} in`, `${tokens_out.toLocaleString("en-US")} out`].join(", ");
  return (
    <Fact name="Used">
      {totalText("cost_usd", cost_usd)}{" "}
      <span className="text-muted">
        · tokens: {tokens} · {counted(turns, "turn")}
      </span>
    </Fact>
  );
}

/** "134,000 of 200,000 tokens, 67 %". */
export function contextText(used: number, size: number): string {
  const share = `${Math.round((used / size) * 100)} %`;
  return `${used.toLocaleString("en-US")} of ${size.toLocaleString("en-US")} tokens, ${share}`;
}

function Context({ session: { context_used: used, context_window: size } }: { session: Session }) {
  if (used === null) return null;
  if (size === null || size <= 0) return <Fact name="Context">{counted(used, "token")}</Fact>;
  const share = Math.min(1, used / size);
  return (
    <Fact name="Context">
      {contextText(used, size)}
      <span
        role="meter"
        aria-label="How full the context is"
        aria-valuemin={0}
        aria-valuemax={size}
        aria-valuenow={Math.min(used, size)}
        aria-valuetext={contextText(used, size)}
        className="mt-0.5 block h-1.5 overflow-hidden rounded-full bg-line"
      >
        <span
          className={`block h-full rounded-full ${share > FULL ? "bg-(--state-missed)" : "bg-(--state-running)"}`}
          style={{ width: `${share * 100}%` }}
        />
      </span>
    </Fact>
  );
}
