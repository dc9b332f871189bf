/** Nodes: the processes whose engine is started, how they are, and drain. */

import { useNodes } from "@/api/queries/nodes";
import { Card } from "@/components/Card";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";
import { QueryView } from "@/components/QueryView";
import { SkeletonCards } from "@/components/Skeleton";
import { NodeCard } from "@/pages/nodes/NodeCard";

export function NodesPage() {
  const nodes = useNodes();
  return (
    <>
      <PageHeader title="Nodes" description="Processes whose engine is started on this database." />
      <QueryView query={nodes} skeleton={<SkeletonCards cards={2} />}>
        {({ items }) =>
          items.length === 0 ? (
            <Card>
              <EmptyState
                icon="nodes"
                title="No engine is running"
                text="Nothing runs until one is started, in a terminal or by a service manager:"
                command="ostinato worker"
              />
            </Card>
          ) : (
            <ul className="grid gap-4 lg:grid-cols-2">
              {items.map((node) => (
                <li key={node.id} className="min-w-0">
                  <NodeCard node={node} />
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
    </>
  );
}
