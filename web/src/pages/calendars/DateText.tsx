/** A date of a calendar: struck out, also for whoever hears it, once it has passed. */

import { dateText, isPast } from "./dates";

export function DateText({ date, today }: { date: string; today: string }) {
  if (!isPast(date, today)) return dateText(date);
  return (
    <>
      <s className="text-muted">{dateText(date)}</s>
      <span className="sr-only"> (passed)</span>
    </>
  );
}
