/** What a run went through: queued, running (each attempt), done, with the time that each took. */

import type { Run } from "@/api/types";
import { Icon } from "@/components/Icon";
import { Time } from "@/components/Time";
import { look } from "@/components/stateLook";
import { useNow } from "@/state/ticker";
import { formatDuration, formatSpan } from "@/time/format";
import { type Phase, phaseSeconds, phasesOf, stepsAhead } from "./phases";

interface Props {
  run: Run;
  /** Without the bar: something else shows how far it is. */
  bare?: boolean;
}

export function StateTimeline({ run, bare = false }: Props) {
  const now = useNow();
  const phases = phasesOf(run);
  const times = phases.filter((phase) => phase.kind !== "end");
  const whole = times.reduce((sum, phase) => sum + phaseSeconds(phase, now), 0);
  return (
    <div>
      <div aria-hidden="true" hidden={bare} className="mb-3 flex h-2 gap-0.5 overflow-hidden rounded-full bg-line">
        {times.map((phase) => (
          <div
            key={phase.start + phase.label}
            className="h-full min-w-1"
            style={{
              flexGrow: whole === 0 ? 1 : Math.max(0.004, phaseSeconds(phase, now) / whole),
              flexBasis: 0,
              ...fill(phase),
            }}
          />
        ))}
      </div>
      <ol className="flex flex-wrap gap-x-1.5 gap-y-2">
        {phases.map((phase, index) => (
          <li key={phase.start + phase.label} className="flex items-start gap-1.5">
            {index > 0 && <Arrow />}
            <Step phase={phase} now={now} zone={run.zone} />
          </li>
        ))}
        {stepsAhead(run).map((label) => (
          <li key={label} className="flex items-start gap-1.5 text-muted">
            <Arrow />
            <div>
              <div className="flex items-center gap-1.5 text-sm">
                <Icon name="circle" size={14} />
                {label}
              </div>
              <div className="text-xs">not yet</div>
            </div>
          </li>
        ))}
      </ol>
    </div>
  );
}

function Arrow() {
  return <Icon name="chevronRight" size={13} className="mt-1 text-muted" />;
}

function fill(phase: Phase) {
  const colour = look(phase.state).color;
  if (phase.kind === "waiting")
    return { background: `repeating-linear-gradient(135deg, ${colour} 0 3px, transparent 3px 6px)` };
  // Nobody knows how far it is: a bar that is full to its end would say that it is done.
  if (phase.end === null) return { background: `linear-gradient(90deg, ${colour}, transparent)` };
  return { background: colour };
}

function Step({ phase, now, zone }: { phase: Phase; now: number; zone: string }) {
  const { icon, tone } = look(phase.kind === "waiting" ? "queued" : phase.state);
  const at = new Date(phase.start).toISOString();
  const seconds = phaseSeconds(phase, now);
  return (
    <div className="min-w-0">
      <div className="flex items-center gap-1.5 text-sm font-medium">
        <span className={INK[tone]}>
          <Icon name={icon} size={14} />
        </span>
        {phase.label}
        {phase.kind !== "end" && (
          <span className="font-normal text-muted tabular-nums">
            {phase.end === null ? formatSpan(seconds) : formatDuration(seconds)}
          </span>
        )}
      </div>
      <div className="text-xs text-muted">
        <Time at={at} zone={zone} seconds />
      </div>
    </div>
  );
}

const INK = {
  good: "text-good",
  bad: "text-bad",
  warn: "text-warn",
  info: "text-info",
  wait: "text-wait",
  quiet: "text-quiet",
} as const;
