/** The dates of a calendar in its form: each can be taken out, and many can be pasted at once. */

import { useEffect, useId, useRef } from "react";
import type { FieldProblem } from "@/api/types";
import { Button } from "@/components/Button";
import { TextArea } from "@/components/Field";
import { Icon } from "@/components/Icon";
import { counted } from "@/time/format";
import { DateText } from "./DateText";
import { inOrder, isPast, readDates } from "./dates";

const RESTED = 700;

interface DatesFieldProps {
  dates: readonly string[];
  onDates: (dates: string[]) => void;
  /** What is written to be added, and not added yet. */
  text: string;
  onText: (text: string) => void;
  error: FieldProblem | null;
  /** What is written was looked at; null if all of it are dates. */
  onError: (error: FieldProblem | null) => void;
  today: string;
}

export function DatesField({ dates, onDates, text, onText, error, onError, today }: DatesFieldProps) {
  const past = dates.filter((date) => isPast(date, today));
  const title = useId();
  useEffect(() => {
    // Not while it is half typed.
    const { problem } = readDates(text);
    const timer = setTimeout(() => problem !== null && onError(problem), RESTED);
    return () => clearTimeout(timer);
  }, [text, onError]);
  const add = (): void => {
    const read = readDates(text);
    onDates(inOrder([...dates, ...read.dates]));
    onText(read.left.join("\n"));
    onError(read.problem);
  };
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-col gap-1">
        <div className="flex min-h-7 flex-wrap items-center gap-x-3">
          <h3 id={title} className="text-sm font-medium">
            Dates
          </h3>
          <span aria-live="polite" className="text-xs text-muted">
            {counted(dates.length, "date")}
          </span>
          {past.length > 0 && (
            <Button
              size="small"
              variant="ghost"
              className="ml-auto"
              onClick={() => onDates(dates.filter((date) => !past.includes(date)))}
            >
              Remove {counted(past.length, "past date")}
            </Button>
          )}
        </div>
        {dates.length > 0 && <Chips labelledBy={title} dates={dates} onDates={onDates} today={today} />}
      </div>
      <TextArea
        label="Add dates"
        name="dates"
        mono
        rows={3}
        spellCheck={false}
        placeholder={"12-24\n2027-03-26"}
        hint="2026-12-24, or 12-24 for every year: one on each line, or separated by commas."
        error={error}
        value={text}
        onChange={(event) => {
          onText(event.target.value);
          onError(null);
        }}
      />
      <Button
        size="small"
        icon="plus"
        className="self-start"
        why={text.trim() === "" ? "Write or paste dates above." : undefined}
        onClick={add}
      >
        Add to the list
      </Button>
    </div>
  );
}

interface ChipsProps extends Pick<DatesFieldProps, "dates" | "onDates" | "today"> {
  labelledBy: string;
}

function Chips({ labelledBy, dates, onDates, today }: ChipsProps) {
  const list = useRef<HTMLUListElement>(null);
  const removed = useRef<number | null>(null);
  useEffect(() => {
    // The button that had the focus is gone: the next one has it.
    const buttons = removed.current === null ? undefined : list.current?.querySelectorAll("button");
    if (buttons !== undefined) buttons[Math.min(removed.current ?? 0, buttons.length - 1)]?.focus();
    removed.current = null;
  }, [dates]);
  return (
    <ul
      ref={list}
      aria-labelledby={labelledBy}
      className="flex max-h-52 flex-wrap gap-1.5 overflow-y-auto rounded-md border border-line bg-sunken p-2"
    >
      {dates.map((date, index) => (
        <li
          key={date}
          className="inline-flex h-7 items-center gap-1 rounded-md border border-line bg-surface pl-2 font-mono text-xs pointer-coarse:h-9"
        >
          <span>
            <DateText date={date} today={today} />
          </span>
          <button
            type="button"
            aria-label={`Remove ${date}`}
            onClick={() => {
              removed.current = index;
              onDates(dates.filter((each) => each !== date));
            }}
            className="inline-flex size-7 items-center justify-center rounded-md text-muted hover:text-bad pointer-coarse:size-9"
          >
            <Icon name="cross" size={12} />
          </button>
        </li>
      ))}
    </ul>
  );
}
