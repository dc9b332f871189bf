/** The audit log: every write of people and programs, newest first. */

import { useCallback } from "react";
import { useAudit } from "@/api/queries/audit";
import { itemsOf } from "@/api/queries/pages";
import type { AuditEntry } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import { QueryView } from "@/components/QueryView";
import { SearchField } from "@/components/SearchField";
import { Select } from "@/components/Select";
import { Time } from "@/components/Time";
import { endOf } from "@/components/rowsEnd";
import { VirtualRows } from "@/components/VirtualRows";
import { SINCE } from "@/state/since";
import { useUrlState } from "@/state/urlState";

/** What the address may hold of this tab. */
const AUDIT_FILTERS = ["who", "object", "verb", "door", "since"] as const;
export const NO_AUDIT_FILTERS = Object.fromEntries(AUDIT_FILTERS.map((name) => [name, undefined]));

const NOUNS: Record<string, string[]> = {
  schedule: ["add", "edit", "enable", "disable", "trigger", "backfill", "remove"],
  run: ["enqueue", "exec", "cancel", "retry"],
  calendar: ["set", "add", "remove"],
  lane: ["set", "pause", "resume", "clear"],
  session: ["send", "stop", "stop_all"],
  node: ["drain", "resume"],
  project: ["add", "remove"],
  token: ["add", "remove"],
  channel: ["add", "remove", "test"],
  rule: ["add", "remove"],
  incident: ["ack", "rerun"],
  db: ["prune"],
};

const anyOr = (any: string, values: string[]) => [{ value: "", label: any }, ...values];

const VERBS = anyOr("Any verb", [
  ...Object.entries(NOUNS).flatMap(([noun, verbs]) => verbs.map((verb) => `${noun}.${verb}`)),
  "login",
  "login.link",
  "logout",
]);
const DOORS = anyOr("Any door", ["page", "api", "cli", "engine"]);

export function AuditTab() {
  const [values, change] = useUrlState();
  const { who, object, verb, door, since = "" } = values;
  const audit = useAudit({ who, door, verb, object, since });
  const isFiltered = AUDIT_FILTERS.some((name) => (values[name] ?? "") !== "");
  const byWho = useCallback((text: string) => change({ who: text }), [change]);
  const byObject = useCallback((text: string) => change({ object: text }), [change]);
  const choices = [
    { name: "verb", label: "Verb", options: VERBS, value: verb },
    { name: "door", label: "Door", options: DOORS, value: door },
    { name: "since", label: "Since", options: SINCE, value: since },
  ];
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <SearchField label="Who" value={who ?? ""} onChange={byWho} />
        <SearchField label="Object (name or number)" slash={false} value={object ?? ""} onChange={byObject} />
        {choices.map(({ name, label, options, value }) => (
          <Select
            key={name}
            label={label}
            hideLabel
            options={options}
            value={value ?? ""}
            onChange={(next) => change({ [name]: next })}
            className="w-40 max-sm:w-[calc(50%-0.25rem)]"
          />
        ))}
      </div>
      <Card flush>
        <QueryView query={audit}>
          {(data) => {
            const items = itemsOf(data);
            if (items.length === 0) return <Nothing onClear={isFiltered ? () => change(NO_AUDIT_FILTERS) : undefined} />;
            return (
              <VirtualRows
                items={items}
                rowKey={(entry) => entry.id}
                label="Audit log"
                row={(entry) => <AuditRow entry={entry} />}
                {...endOf(audit)}
              />
            );
          }}
        </QueryView>
      </Card>
    </>
  );
}

function Nothing({ onClear }: { onClear: (() => void) | undefined }) {
  if (onClear !== undefined)
    return (
      <EmptyState
        icon="search"
        title="No entry matches these filters"
        action={<Button onClick={onClear}>Clear filters</Button>}
      />
    );
  return (
    <EmptyState
      icon="history"
      title="Nothing is recorded yet"
      text="Every write is recorded, from the page, the API or the command line:"
      command="ostinato schedule trigger NAME"
    />
  );
}

function AuditRow({ entry }: { entry: AuditEntry }) {
  const detail = Object.entries(entry.detail)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
  return (
    <div className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5 border-b border-line px-4 py-2 text-sm">
      <Time at={entry.at} seconds className="w-32 text-xs text-muted max-sm:w-auto" />
      <span className="font-medium break-all">{entry.who}</span>
      <code className="font-mono text-xs">{entry.verb}</code>
      <span className="break-all">{entry.object}</span>
      <span className="min-w-0 flex-1 basis-48 truncate text-xs text-muted" title={detail}>
        {detail}
      </span>
      <span className="text-xs text-muted">{entry.address}</span>
      <Badge>{entry.door}</Badge>
    </div>
  );
}
