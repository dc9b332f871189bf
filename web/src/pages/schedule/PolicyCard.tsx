import type { Schedule } from "@/api/types";
import { Card } from "@/components/Card";
import { type PolicyLine, policyWords } from "./policyWords";

/** How the schedule is treated, in words; the defaults are folded away. */
export function PolicyCard({ schedule }: { schedule: Schedule }) {
  const words = policyWords(schedule.policy, schedule.work.kind);
  return (
    <Card title="Policies">
      <Lines lines={words.first} />
      {words.first.some((line) => line.changed) && (
        <p className="mt-3 flex items-center gap-1.5 text-xs text-muted">
          <Dot /> differs from the default
        </p>
      )}
      <details className="mt-3 text-sm">
        <summary className="w-fit rounded text-xs font-medium text-accent hover:underline">All policies</summary>
        <div className="mt-2">
          <Lines lines={words.rest} />
        </div>
      </details>
    </Card>
  );
}

function Lines({ lines }: { lines: readonly PolicyLine[] }) {
  return (
    <dl className="flex flex-col gap-2">
      {lines.map((line) => (
        <div key={line.name}>
          <dt className="flex items-center gap-1.5 text-xs font-medium text-muted">
            {line.name}
            {line.changed && <Dot title="Differs from the default" />}
          </dt>
          <dd className="text-sm break-words">{line.text}</dd>
        </div>
      ))}
    </dl>
  );
}

function Dot({ title }: { title?: string }) {
  return <span className="size-1.5 rounded-full bg-accent" title={title} />;
}
