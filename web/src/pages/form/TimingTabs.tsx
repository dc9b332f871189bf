/** The tabs that write a timing for people who do not want to type it. */

import { type ReactNode, useState } from "react";
import { Tabs } from "@/components/Tabs";
import { AtTab, CalendarTab, CronTab, EveryTab, type TabProps } from "./TimingFields";
import { splitDaysOff } from "./daysOff";
import { type TimingDraft, type TimingTab, draftOf, firstDraft, isWhole, textOf } from "./timingText";

interface Props {
  text: string;
  onText: (text: string) => void;
}

const EXAMPLES = [
  "every 5m",
  "weekdays 09:30 except 12-25",
  "daily 03:00 jitter 10m",
  "daily 09:00 or daily 15:00",
  "every 1h after finish",
  "monthly last 18:00",
  "@hourly",
];

/** What somebody chose or filled in here, and the text as it was then: it holds while the text stays. */
interface Held {
  tab: TimingTab;
  text: string;
  draft: TimingDraft | null;
}

function begin(tab: TimingTab, text: string, read: TimingDraft | null): Held {
  return { tab, text, draft: tab === "text" ? null : read?.kind === tab ? read : firstDraft(tab, read) };
}

export function TimingTabs({ text, onText }: Props) {
  // The days that it leaves out stay, whatever is filled in here.
  const [plain, daysOff] = splitDaysOff(text);
  const read = draftOf(plain);
  const [held, setHeld] = useState<Held>(() => begin(read?.kind ?? (text === "" ? "every" : "text"), text, read));
  const isHeld = held.text === text;
  // Typing moves to the tab that says the same; while the text is half typed, the tab stays.
  const tab: TimingTab = held.tab === "text" || isHeld ? held.tab : (read?.kind ?? held.tab);
  // Fields that are filled in here may say less than a timing yet: they are kept as they are.
  const draft = isHeld && held.draft !== null ? held.draft : read?.kind === tab ? read : null;

  /** Looking into another tab changes nothing: the text is written when a field is edited. */
  function choose(next: string): void {
    setHeld(begin(next as TimingTab, text, read));
  }
  function set(next: TimingDraft): void {
    const after = isWhole(next) ? textOf(next) + daysOff : text;
    setHeld({ tab: next.kind, text: after, draft: next });
    if (after !== text) onText(after);
  }
  const of = <K extends TimingDraft["kind"]>(kind: K): TabProps<K> => ({
    draft: (draft?.kind === kind ? draft : firstDraft(kind, read)) as Extract<TimingDraft, { kind: K }>,
    onChange: set,
  });
  const shows = tab === "text" || text.trim() === "" || (draft !== null && isWhole(draft));
  const note = shows ? null : <Unshown text={text} />;

  return (
    <Tabs
      label="Kind of timing"
      value={tab}
      onChange={choose}
      tabs={[
        { id: "every", label: "Every", content: <Builder note={note} fields={<EveryTab {...of("every")} />} /> },
        { id: "at", label: "At", content: <Builder note={note} fields={<AtTab {...of("at")} />} /> },
        {
          id: "calendar",
          label: "Daily, weekly, monthly",
          content: <Builder note={note} fields={<CalendarTab {...of("calendar")} />} />,
        },
        { id: "cron", label: "Cron", content: <Builder note={note} fields={<CronTab {...of("cron")} />} /> },
        { id: "text", label: "Free text", content: <Examples onText={onText} /> },
      ]}
    />
  );
}

function Builder({ note, fields }: { note: ReactNode; fields: ReactNode }) {
  return (
    <div className="flex flex-col gap-2.5">
      {note}
      {fields}
    </div>
  );
}

function Unshown({ text }: { text: string }) {
  return (
    <p role="status" className="text-xs text-muted">
      These fields cannot show <code className="font-mono text-ink">{text.trim()}</code>. The timing stays as it is
      until you fill them in.
    </p>
  );
}

function Examples({ onText }: { onText: (text: string) => void }) {
  return (
    <div className="flex flex-wrap gap-1.5">
      {EXAMPLES.map((example) => (
        <button
          key={example}
          type="button"
          onClick={() => onText(example)}
          className="rounded-md border border-line bg-sunken px-2 py-1 font-mono text-xs hover:border-line-strong"
        >
          {example}
        </button>
      ))}
    </div>
  );
}
