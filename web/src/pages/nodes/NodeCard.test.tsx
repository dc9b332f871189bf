import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { Node } from "@/api/types";
import { renderPage } from "@/testing/render";
import { stubServer } from "@/testing/server";
import { NodeCard } from "./NodeCard";

const node = (state: Node["state"]): Node => ({
  id: "n1",
  host: "box",
  pid: 7,
  state,
  draining: false,
  started_at: "2026-11-16T10:00:00Z",
  seen_at: "2026-11-16T10:05:00Z",
  slots: 4,
  running: 4,
  services: {},
  tasks: [],
}) as Node;

it.each([
  ["alive", 1],
  ["lost", 0],
] as const)("a node that is %s uses its slots, unless it is lost", async (state, shown) => {
  stubServer({});
  renderPage(() => <NodeCard node={node(state)} />);
  await screen.findByText("Heartbeat");
  expect(screen.queryAllByText("4 of 4 used")).toHaveLength(shown);
});
