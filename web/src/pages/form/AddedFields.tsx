/** The fields of a kind of work that a package adds, by the description that the server gives of it. */

import type { FieldProblem, Kind, KindField } from "@/api/types";
import { TextArea, TextField } from "@/components/Field";
import { type Option, Select } from "@/components/Select";

interface Props {
  kind: Kind;
  texts: Record<string, string>;
  onChange: (texts: Record<string, string>) => void;
  errors: Record<string, FieldProblem>;
}

const HOW: Partial<Record<KindField["form"], string>> = {
  texts: "One on each line; a JSON text where it has more than one.",
  pairs: "One NAME=value on each line.",
  json: "JSON.",
  command: 'A JSON list such as ["python", "job.py"] runs without a shell.',
};
const SWITCH: Option[] = [
  { value: "false", label: "no" },
  { value: "true", label: "yes" },
];
const LONG = new Set<KindField["form"]>(["texts", "pairs", "json", "command"]);

export function AddedFields({ kind, texts, onChange, errors }: Props) {
  return (
    <>
      {kind.help !== "" && <p className="text-xs text-muted">{kind.help}</p>}
      {kind.fields.map((field, index) => (
        <Control
          key={field.name}
          field={field}
          isMain={index === 0}
          value={texts[field.name] ?? ""}
          error={errors[`work.${field.name}`]}
          onChange={(value) => onChange({ [field.name]: value })}
        />
      ))}
    </>
  );
}

interface ControlProps {
  field: KindField;
  isMain: boolean;
  value: string;
  error: FieldProblem | undefined;
  onChange: (value: string) => void;
}

function Control({ field, isMain, value, error, onChange }: ControlProps) {
  const said = [field.help, HOW[field.form], field.secret ? "May be a reference: env:NAME or file:PATH." : undefined];
  const hint = said.filter(Boolean).join(" ") || undefined;
  const common = { label: field.label, name: `work.${field.name}`, error, hint };
  if (field.form === "choice" || field.form === "switch") {
    const words: Option[] =
      field.form === "switch" ? SWITCH : field.choices.map((word) => ({ value: word, label: word }));
    // What must be chosen is chosen by somebody: the first word would be shown, and not sent.
    const isOpen = field.nullable || (field.required && field.form === "choice");
    const options = isOpen ? [{ value: "", label: "" }, ...words] : words;
    return <Select {...common} value={value} options={options} onChange={onChange} />;
  }
  const bound = { ...common, value, onChange: (event: { target: { value: string } }) => onChange(event.target.value) };
  if (isMain || LONG.has(field.form)) return <TextArea {...bound} mono rows={isMain ? 3 : 2} spellCheck={false} />;
  return <TextField {...bound} spellCheck={false} autoComplete="off" />;
}
