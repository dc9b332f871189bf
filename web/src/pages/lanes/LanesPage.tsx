/** Lanes: how full each is, and what can be done about it. */

import { useLanes } from "@/api/queries/lanes";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { SkeletonCards } from "@/components/Skeleton";
import { LaneCard } from "@/pages/lanes/LaneCard";

export function LanesPage() {
  const lanes = useLanes();
  return (
    <>
      <PageHeader
        title="Lanes"
        description="A lane limits how many runs are under way at once, on all nodes together."
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
    </>
  );
}
