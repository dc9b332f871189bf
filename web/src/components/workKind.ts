/** How each kind of work looks: a word and a shape. */

import type { Work } from "@/api/types";
import type { IconName } from "@/components/Icon";

const KINDS: Record<Work["kind"], { label: string; icon: IconName }> = {
  shell: { label: "Shell", icon: "terminal" },
  agent: { label: "Agent", icon: "bolt" },
  http: { label: "HTTP", icon: "send" },
  function: { label: "Task", icon: "gear" },
  check_in: { label: "Check-in", icon: "check" },
  unreadable: { label: "Unreadable", icon: "alert" },
};

export function workKind(work: Work): { label: string; icon: IconName } {
  // What a package adds is not among those that this page was made with.
  return (KINDS as Partial<typeof KINDS>)[work.kind] ?? { label: work.kind, icon: "gear" };
}
