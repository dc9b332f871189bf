/** Rows that nobody could work with: what they are, and why each was set aside. */

import type { Overview } from "@/api/types";
import { Card } from "@/components/Card";
import { Command } from "@/components/Command";
import { Ago } from "@/components/Time";
import { counted } from "@/time/format";

export function QuarantineCard({ rows, total }: { rows: Overview["quarantine"]; total: number }) {
  return (
    <Card title="Quarantined" aside={counted(total, "row")}>
      <p className="mb-2 text-sm text-muted">
        These rows could not be read. Each was ended, switched off, repaired or removed, and everything else goes on.
      </p>
      <ul className="mb-3 flex flex-col gap-1 text-sm">
        {rows.map((row) => (
          <li key={`${row.table} ${row.row} ${row.at}`}>
            <span className="font-medium">
              {row.table} {row.row}
            </span>
            : {row.reason} · <Ago at={row.at} />
          </li>
        ))}
      </ul>
      <Command text="ostinato db quarantine" />
    </Card>
  );
}
