import { useChannels } from "@/api/queries/channels";
import { useLanes } from "@/api/queries/lanes";
import type { FieldProblem } from "@/api/types";
import { TextField } from "@/components/Field";
import { Select } from "@/components/Select";
import { Badge } from "@/components/Badge";
import { Icon } from "@/components/Icon";
import {
  POLICY_GROUPS,
  type PolicyField,
  type PolicyGroup,
  type PolicyPath,
  type PolicyValues,
  type WorkKind,
  helpOf,
  standardOf,
} from "./policyGroups";

interface Props {
  values: PolicyValues;
  kind: WorkKind;
  onChange: (path: PolicyPath, value: string) => void;
  errors: Record<string, FieldProblem>;
}

/** How to treat it. Every field has its default as placeholder, so an empty form is a good one. */
export function PolicySection({ values, kind, onChange, errors }: Props) {
  return (
    <div className="divide-y divide-line">
      {POLICY_GROUPS.map((group) => (
        <Group key={group.title} group={group} values={values} kind={kind} onChange={onChange} errors={errors} />
      ))}
    </div>
  );
}

function Group({ group, ...rest }: Props & { group: PolicyGroup }) {
  const given = group.fields.filter((field) => rest.values[field.path] !== "").length;
  const wrong = group.fields.some((field) => `policy.${field.path}` in rest.errors);
  return (
    // What is set, and what the server refused, is not hidden.
    <details open={given > 0 || wrong || undefined} className="group py-1">
      <summary className="flex list-none items-center gap-2 rounded py-2 text-sm font-medium">
        <Icon name="chevronRight" size={13} className="text-muted transition-transform group-open:rotate-90" />
        <span className="whitespace-nowrap">{group.title}</span>
        <span className="truncate text-xs font-normal text-muted group-open:hidden max-sm:hidden">
          {group.fields.map((field) => field.label.toLowerCase()).join(", ")}
        </span>
        {given > 0 && <Badge tone="accent">{given} set</Badge>}
      </summary>
      <div className="grid gap-x-4 gap-y-3 pt-1 pb-3 sm:grid-cols-2 xl:grid-cols-3">
        {group.fields.map((field) => (
          <Control key={field.path} field={field} {...rest} />
        ))}
      </div>
    </details>
  );
}

function Control(props: Props & { field: PolicyField }) {
  if (props.field.path === "lane") return <Lane {...props} />;
  return props.field.path === "notify" ? <Notify {...props} /> : <Plain {...props} />;
}

/** The lanes that there are. One that is not made yet would be taken for another. */
function Lane({ field, values, kind, onChange, errors }: Props & { field: PolicyField }) {
  const lanes = useLanes().data?.items;
  const chosen = values.lane;
  const standard = standardOf(field, kind);
  const names = (lanes ?? []).map((lane) => lane.name).filter((name) => name !== standard);
  const isGone = lanes !== undefined && chosen !== "" && chosen !== standard && !names.includes(chosen);
  const missing = `There is no lane ${chosen}: its runs wait in lane main. Choose another, or make it under Lanes.`;
  return (
    <Select
      label={field.label}
      hint={field.help}
      error={errors["policy.lane"] ?? (isGone ? missing : undefined)}
      name="policy.lane"
      value={chosen}
      onChange={(next) => onChange("lane", next)}
      options={[{ value: "", label: `${standard} (default)` }, ...new Set([...names, chosen].filter(Boolean))]}
    />
  );
}

/** Who is told: the channels that there are can be taken with a click. */
function Notify(props: Props & { field: PolicyField }) {
  const { values, onChange } = props;
  const channels = useChannels().data?.items ?? [];
  const given = values.notify
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "" && entry !== "none");
  const isGiven = (channel: string) => given.some((entry) => entry.split("=")[0] === channel);
  const press = (channel: string): void => {
    const others = given.filter((entry) => entry.split("=")[0] !== channel);
    onChange("notify", (isGiven(channel) ? others : [...given, channel]).join(", "));
  };
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      <Plain {...props} />
      {channels.length > 0 && (
        <div role="group" aria-label="Channels" className="flex flex-wrap gap-1">
          {channels.map(({ name }) => (
            <button
              key={name}
              type="button"
              aria-pressed={isGiven(name)}
              onClick={() => press(name)}
              className="min-w-0 rounded-md border border-line px-1.5 py-px text-xs text-muted hover:text-ink aria-pressed:border-accent aria-pressed:bg-accent-soft aria-pressed:text-accent"
            >
              {name}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function Plain({ field, values, kind, onChange, errors }: Props & { field: PolicyField }) {
  const name = `policy.${field.path}`;
  const value = values[field.path];
  const standard = standardOf(field, kind);
  const shared = { label: field.label, hint: helpOf(field), error: errors[name], name };
  if (field.type === "flag") {
    return (
      <div className="flex flex-col gap-1">
        <label className="flex items-center gap-2 text-sm font-medium">
          <input
            type="checkbox"
            name={name}
            checked={value === "true"}
            onChange={(event) => onChange(field.path, event.target.checked ? "true" : "")}
            className="size-4 accent-accent"
          />
          {field.label}
        </label>
        <p className="text-xs text-muted">{field.help}</p>
      </div>
    );
  }
  if (field.choices !== undefined) {
    const options = field.choices.map((choice) =>
      choice.value === standard ? { value: "", label: `${choice.label} (default)` } : choice,
    );
    return <Select {...shared} value={value} onChange={(next) => onChange(field.path, next)} options={options} />;
  }
  return (
    <TextField
      {...shared}
      value={value}
      placeholder={standard}
      inputMode={field.type === "whole" ? "numeric" : undefined}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => onChange(field.path, event.target.value)}
    />
  );
}
