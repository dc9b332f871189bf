/** The fields of each tab of a timing: every, at, calendar and cron. */

import type { ReactNode } from "react";
import { TextField } from "@/components/Field";
import { Segmented } from "@/components/Segmented";
import { Select } from "@/components/Select";
import { type TimingDraft, UNITS, type Unit, WEEKDAYS, type Weekday } from "./timingText";

export interface TabProps<K extends TimingDraft["kind"]> {
  draft: Extract<TimingDraft, { kind: K }>;
  onChange: (draft: TimingDraft) => void;
}

function Line({ children }: { children: ReactNode }) {
  return <div className="flex flex-wrap items-end gap-3">{children}</div>;
}

function Amount({
  amount,
  unit,
  onChange,
}: {
  amount: string;
  unit: Unit;
  onChange: (amount: string, unit: Unit) => void;
}) {
  return (
    <>
      <TextField
        label="How many"
        type="number"
        min={1}
        inputMode="numeric"
        value={amount}
        onChange={(event) => onChange(event.target.value, unit)}
        className="w-24"
      />
      <Select
        label="Unit"
        value={unit}
        onChange={(next) => onChange(amount, next as Unit)}
        options={UNITS}
        className="w-32"
      />
    </>
  );
}

export function EveryTab({ draft, onChange }: TabProps<"every">) {
  return (
    <Line>
      <Amount
        amount={draft.amount}
        unit={draft.unit}
        onChange={(amount, unit) => onChange({ ...draft, amount, unit })}
      />
      <label className="flex h-8 items-center gap-2 text-sm">
        <input
          type="checkbox"
          checked={draft.afterFinish}
          onChange={(event) => onChange({ ...draft, afterFinish: event.target.checked })}
          className="size-4 accent-accent"
        />
        counting from the end of the last run
      </label>
    </Line>
  );
}

export function AtTab({ draft, onChange }: TabProps<"at">) {
  return (
    <Line>
      <Segmented
        label="Once"
        value={draft.mode}
        options={[
          { value: "at", label: "At a fixed time" },
          { value: "in", label: "After a delay" },
        ]}
        onChange={(mode) =>
          onChange(
            mode === "at" ? { kind: "at", mode, when: "" } : { kind: "at", mode, amount: "", unit: "m" },
          )
        }
      />
      {draft.mode === "at" ? (
        <TextField
          label="When (in the schedule’s zone)"
          type="datetime-local"
          value={draft.when}
          onChange={(event) => event.target.value !== "" && onChange({ ...draft, when: event.target.value })}
          className="w-56"
        />
      ) : (
        <Amount
          amount={draft.amount}
          unit={draft.unit}
          onChange={(amount, unit) => onChange({ ...draft, amount, unit })}
        />
      )}
    </Line>
  );
}

export function CalendarTab({ draft, onChange }: TabProps<"calendar">) {
  const { time } = draft;
  function repeat(next: "daily" | "weekly" | "monthly"): void {
    if (next === "daily") onChange({ kind: "calendar", repeat: next, time });
    else if (next === "weekly") onChange({ kind: "calendar", repeat: next, days: ["mon"], time });
    else onChange({ kind: "calendar", repeat: next, day: "1", time });
  }
  return (
    <Line>
      <Segmented
        label="How often"
        value={draft.repeat}
        options={[
          { value: "daily", label: "Daily" },
          { value: "weekly", label: "Weekly" },
          { value: "monthly", label: "Monthly" },
        ]}
        onChange={repeat}
      />
      {draft.repeat === "weekly" && <Days days={draft.days} onChange={(days) => onChange({ ...draft, days })} />}
      {draft.repeat === "monthly" && (
        <Select
          label="Day"
          value={draft.day}
          onChange={(day) => onChange({ ...draft, day })}
          options={[...Array.from({ length: 31 }, (_, index) => String(index + 1)), { value: "last", label: "last" }]}
          className="w-24"
        />
      )}
      <TextField
        label="Time"
        type="time"
        value={time}
        onChange={(event) => event.target.value !== "" && onChange({ ...draft, time: event.target.value })}
        className="w-32"
      />
    </Line>
  );
}

function Days({ days, onChange }: { days: readonly Weekday[]; onChange: (days: Weekday[]) => void }) {
  return (
    <div role="group" aria-label="Days of the week" className="flex flex-wrap gap-1">
      {WEEKDAYS.map((day) => {
        const on = days.includes(day);
        return (
          <button
            key={day}
            type="button"
            aria-pressed={on}
            // A week without a day is no timing: the last one stays.
            onClick={() =>
              days.length === 1 && on
                ? undefined
                : onChange(WEEKDAYS.filter((each) => (each === day ? !on : days.includes(each))))
            }
            className="h-8 rounded-md border border-line-strong px-2 text-xs font-medium capitalize hover:bg-sunken aria-pressed:border-accent aria-pressed:bg-accent-soft aria-pressed:text-accent pointer-coarse:h-9"
          >
            {day}
          </button>
        );
      })}
    </div>
  );
}

const CRON_PARTS = ["minute", "hour", "day", "month", "weekday"];

export function CronTab({ draft, onChange }: TabProps<"cron">) {
  const fields = draft.expression.split(" ");
  if (draft.expression.startsWith("@") || fields.length !== 5) {
    return (
      <TextField
        label="Expression"
        hint="Five fields, seconds before or a year behind them, or a macro such as @daily."
        value={draft.expression}
        onChange={(event) => onChange({ kind: "cron", expression: event.target.value })}
        className="max-w-xs"
      />
    );
  }
  return (
    <div className="grid max-w-md grid-cols-5 gap-2">
      {fields.map((field, index) => (
        <TextField
          key={CRON_PARTS[index]}
          label={CRON_PARTS[index] ?? ""}
          placeholder="*"
          value={field}
          onChange={(event) => {
            const part = event.target.value.replace(/\s/g, "");
            onChange({
              kind: "cron",
              expression: fields.map((each, place) => (place === index ? part : each)).join(" "),
            });
          }}
        />
      ))}
    </div>
  );
}
