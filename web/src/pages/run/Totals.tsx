/** The named counters that the work reported. Errors are red when there are some; money is money. */

import { classes } from "@/components/classes";

const SHOWN: Record<string, string> = { cost_usd: "cost", tokens_in: "tokens in", tokens_out: "tokens out" };

export function totalText(name: string, value: number): string {
  if (name.endsWith("_usd")) return `$${value.toFixed(value !== 0 && Math.abs(value) < 0.1 ? 4 : 2)}`;
  return value.toLocaleString("en-US", { maximumFractionDigits: 3 });
}

export function totalName(name: string): string {
  return SHOWN[name] ?? name.replaceAll("_", " ");
}

/** `copied 120, errors 3`. */
export function totalsText(totals: Record<string, number>): string {
  return Object.entries(totals)
    .map(([name, value]) => `${totalName(name)} ${totalText(name, value)}`)
    .join(", ");
}

export function Totals({ totals }: { totals: Record<string, number> }) {
  return (
    <dl className="flex flex-wrap gap-2">
      {Object.entries(totals).map(([name, value]) => (
        <div
          key={name}
          className={classes(
            "min-w-0 rounded-md border border-line px-2.5 py-1.5",
            name === "errors" && value > 0 && "border-bad/40 bg-bad-soft",
          )}
        >
          <dt className="text-xs text-muted">{totalName(name)}</dt>
          <dd className={classes("text-base font-semibold tabular-nums", name === "errors" && value > 0 && "text-bad")}>
            {totalText(name, value)}
          </dd>
        </div>
      ))}
    </dl>
  );
}
