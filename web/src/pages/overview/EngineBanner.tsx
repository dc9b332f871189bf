/** What keeps work from starting, or was lost a moment ago: no engine, only draining nodes, a node that is gone. */

import { Link } from "@tanstack/react-router";
import { useNodes } from "@/api/queries/nodes";
import type { Node, Overview } from "@/api/types";
import { Banner } from "@/components/Banner";
import { buttonClass } from "@/components/Button";
import { Command } from "@/components/Command";
import { Ago } from "@/components/Time";
import { useNow } from "@/state/ticker";

/** Longer ago it is history, which the page of the nodes tells. */
const LATELY = 600_000;

export function EngineBanner({ engine }: { engine: Overview["engine"] }) {
  const nodes = useNodes().data?.items ?? [];
  if (!engine.alive) {
    return (
      <Banner
        tone="bad"
        title="No engine is running"
        actions={<Command text="ostinato worker" />}
      >
        Nothing runs until one is started. Start it on any machine that can reach this database.
      </Banner>
    );
  }
  const here = nodes.filter((node) => node.state !== "lost");
  return (
    <>
      {here.length > 0 && here.every((node) => node.draining) && (
        <Banner tone="warn" title="No node takes new work: all are draining" actions={<ToNodes />}>
          Active runs go on; new runs wait until a node is resumed or another one is started.
        </Banner>
      )}
      <Lost nodes={nodes.filter((node) => node.state === "lost")} />
    </>
  );
}

function Lost({ nodes }: { nodes: Node[] }) {
  const now = useNow();
  const lately = nodes
    .filter((node) => now - Date.parse(node.seen_at) < LATELY)
    .sort((one, other) => Date.parse(other.seen_at) - Date.parse(one.seen_at));
  const [last] = lately;
  if (last === undefined) return null;
  const title =
    lately.length === 1
      ? `Node ${last.id} was lost: it stopped without notice`
      : `${lately.length} nodes were lost: they stopped without notice`;
  const aside = (
    <>
      last seen <Ago at={last.seen_at} />
    </>
  );
  return <Banner tone="warn" title={title} aside={aside} actions={<ToNodes />} />;
}

function ToNodes() {
  return (
    <Link to="/nodes" className={buttonClass("secondary", "small")}>
      Show nodes
    </Link>
  );
}
