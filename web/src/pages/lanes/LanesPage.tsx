/** Lanes: how full each is, and what can be done about it. */

import { useState } from "react";
import { useLanes } from "@/api/queries/lanes";
import { useMay } from "@/api/queries/me";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { SkeletonCards } from "@/components/Skeleton";
import { LaneCard } from "@/pages/lanes/LaneCard";
import { NewLaneDialog } from "@/pages/lanes/NewLaneDialog";

export function LanesPage() {
  const lanes = useLanes();
  const may = useMay("operator");
  const [making, setMaking] = useState(false);
  return (
    <>
      <PageHeader
        title="Lanes"
        description="A lane limits how many runs are under way at once, on all nodes together."
        actions={
          <Button variant="primary" icon="plus" why={may.reason} onClick={() => setMaking(true)}>
            New lane
          </Button>
        }
      />
      <QueryView query={lanes} skeleton={<SkeletonCards cards={4} />}>
        {({ items }) =>
          items.length === 0 ? (
            <Card>
              <EmptyState
                icon="lanes"
                title="There are no lanes yet"
                text="They are created when the first engine starts, or with this command:"
                command="ostinato lane set reports 5"
              />
            </Card>
          ) : (
            <ul className="grid gap-4 md:grid-cols-2 xl:grid-cols-3">
              {items.map((lane) => (
                <li key={lane.name} className="min-w-0">
                  <LaneCard lane={lane} />
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
      {making && <NewLaneDialog onClose={() => setMaking(false)} />}
    </>
  );
}
