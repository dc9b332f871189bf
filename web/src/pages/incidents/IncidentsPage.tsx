/** Incidents: what is wrong, the open ones first. */

import { useIncidents } from "@/api/queries/incidents";
import { itemsOf } from "@/api/queries/pages";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { Segmented } from "@/components/Segmented";
import { IncidentRow } from "@/pages/incidents/IncidentRow";
import { useUrlState } from "@/state/urlState";

const STATES = [
  { value: "all", label: "All" },
  { value: "open", label: "Open" },
  { value: "closed", label: "Closed" },
] as const;
type Shown = (typeof STATES)[number]["value"];

export function IncidentsPage() {
  const [values, change] = useUrlState();
  const shown: Shown = STATES.find(({ value }) => value === values["state"])?.value ?? "all";
  const incidents = useIncidents(shown === "all" ? undefined : shown);
  return (
    <>
      <PageHeader
        title="Incidents"
        description="What failed, was missed or is late: one for each cause, open until it succeeds again."
      />
      <div className="mb-3">
        <Segmented
          label="Show incidents"
          value={shown}
          options={STATES}
          onChange={(state) => change({ state: state === "all" ? undefined : state })}
        />
      </div>
      <Card flush>
        <QueryView query={incidents}>
          {(data) => {
            const items = itemsOf(data);
            if (items.length === 0) return <Nothing open={shown === "open"} />;
            return (
              <ul aria-label="Incidents" className="divide-y divide-line overflow-hidden rounded-lg">
                {items.map((incident) => (
                  <IncidentRow key={incident.id} incident={incident} />
                ))}
              </ul>
            );
          }}
        </QueryView>
      </Card>
      {incidents.hasNextPage && (
        <div className="mt-3 flex justify-center">
          <Button busy={incidents.isFetchingNextPage} onClick={() => void incidents.fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}

function Nothing({ open }: { open: boolean }) {
  return (
    <EmptyState
      icon="bell"
      title={open ? "Nothing is wrong" : "No incidents yet"}
      text="Who is told of incidents is set with channels and rules, in the settings or on the command line:"
      command="ostinato notify rule add phone --all"
    />
  );
}
