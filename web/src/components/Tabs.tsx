/** Tabs: the arrows move between them, only the chosen one is drawn. */

import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { classes, FILL } from "@/components/classes";

export interface Tab {
  id: string;
  label: ReactNode;
  content: ReactNode;
}

interface TabsProps {
  label: string;
  tabs: Tab[];
  value: string;
  onChange: (id: string) => void;
  /** The content takes the height that the column around it has left. */
  fill?: boolean;
}

export function Tabs({ label, tabs, value, onChange, fill = false }: TabsProps) {
  return (
    <Radix.Root value={value} onValueChange={onChange} className={classes(fill && FILL)}>
      <Radix.List aria-label={label} className="flex gap-1 overflow-x-auto border-b border-line">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.id}
            value={tab.id}
            className="-mb-px border-b-2 border-transparent px-2.5 py-2 text-sm font-medium whitespace-nowrap text-muted hover:text-ink focus-visible:-outline-offset-2 data-[state=active]:border-accent data-[state=active]:text-ink"
          >
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content
          key={tab.id}
          value={tab.id}
          className={classes("pt-4 focus-visible:outline-offset-4", fill && tab.id === value && FILL)}
        >
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
