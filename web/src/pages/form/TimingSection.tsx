import { useId, useState } from "react";
import { useMe } from "@/api/queries/me";
import type { FieldProblem } from "@/api/types";
import { Button } from "@/components/Button";
import { Field, controlClass } from "@/components/Field";
import { Select } from "@/components/Select";
import { classes } from "@/components/classes";
import { browserZone } from "@/state/zone";
import { TimingPreview } from "./TimingPreview";
import { TimingTabs } from "./TimingTabs";
import { CalendarChoice } from "./CalendarChoice";
import { Preset } from "./Preset";
import { PRESETS, isPreset } from "./timingText";

interface Props {
  text: string;
  zone: string;
  /** Of the schedule. */
  name: string;
  enabled: boolean;
  onChange: (changes: { timing?: string; zone?: string; enabled?: boolean }) => void;
  errors: { timing?: FieldProblem; zone?: FieldProblem };
}

/** When: the text is always there and can be typed; presets and tabs write it; the server says what it means. */
export function TimingSection({ text, zone, name, enabled, onChange, errors }: Props) {
  const presets = useId();
  const setText = (timing: string) => onChange({ timing });
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-[minmax(0,1fr)_20rem]">
      <div className="flex min-w-0 flex-col gap-4">
        <div className="grid gap-3 sm:grid-cols-[minmax(0,1fr)_15rem]">
          <Field label="Timing" error={errors.timing}>
            {(control) => (
              <input
                {...control}
                name="timing"
                value={text}
                placeholder="every 5m"
                autoComplete="off"
                autoCapitalize="none"
                spellCheck={false}
                onChange={(event) => setText(event.target.value)}
                className={classes(controlClass, "h-8 font-mono pointer-coarse:h-9")}
              />
            )}
          </Field>
          <ZoneSelect zone={zone} error={errors.zone} onChange={(next) => onChange({ zone: next })} />
        </div>
        <div className="flex flex-wrap items-center gap-1.5">
          <span id={presets} className="mr-1 text-xs text-muted">
            Presets
          </span>
          <div role="group" aria-labelledby={presets} className="flex flex-wrap gap-1.5">
            <Preset label="Off" pressed={!enabled} onClick={() => onChange({ enabled: !enabled })} />
            {PRESETS.map((preset) => (
              <Preset
                key={preset.label}
                label={preset.label}
                pressed={enabled && isPreset(text, preset.text)}
                onClick={() => onChange({ timing: preset.text, enabled: true })}
              />
            ))}
          </div>
          {enabled ? (
            <span className="text-xs text-muted">after the last run has finished</span>
          ) : (
            <span className="flex items-center gap-1.5 text-xs text-warn">
              The schedule will be saved switched off.
              <Button size="small" variant="ghost" onClick={() => onChange({ enabled: true })}>
                Keep it on
              </Button>
            </span>
          )}
        </div>
        <CalendarChoice text={text} onText={setText} />
        <TimingTabs text={text} onText={setText} />
      </div>
      <TimingPreview text={text} zone={zone} name={name} onUse={setText} />
    </div>
  );
}

const UTC_NAMES = ["UTC", "Etc/UTC", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal"];

/** UTC has many names; it is listed once. */
function oneName(zone: string): string {
  return UTC_NAMES.includes(zone) ? "UTC" : zone;
}

/** All zones are many hundreds: they are listed when somebody goes to the field. */
function ZoneSelect({
  zone,
  error,
  onChange,
}: {
  zone: string;
  error?: FieldProblem;
  onChange: (zone: string) => void;
}) {
  const standard = useMe().data?.zone ?? "UTC";
  const [all, setAll] = useState(false);
  const listed = [zone, browserZone(), "UTC", ...(all ? Intl.supportedValuesOf("timeZone") : [])];
  const known = new Set(listed.map(oneName));
  known.delete("");
  known.delete(oneName(standard));
  return (
    <Select
      label="Zone"
      name="zone"
      value={oneName(zone) === oneName(standard) ? "" : oneName(zone)}
      error={error}
      // By its name: an edit that sends no zone would keep the old one.
      onChange={(next) => onChange(next === "" ? standard : next)}
      onFocus={() => setAll(true)}
      onPointerDown={() => setAll(true)}
      options={[{ value: "", label: `${standard} (default)` }, ...known]}
    />
  );
}
