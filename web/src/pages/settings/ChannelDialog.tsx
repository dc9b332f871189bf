/** Adds a channel, or changes one. Its URL is a secret: it is given, and never shown. */

import { type FormEvent, useId, useState } from "react";
import { ProblemError } from "@/api/client";
import { useAddChannel } from "@/api/queries/channels";
import type { Channel } from "@/api/types";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { ProblemNote } from "@/components/ProblemNote";

interface ChannelDialogProps {
  /** null for a new one. */
  channel: Channel | null;
  onClose: () => void;
}

const FIELDS = [
  { name: "quiet", label: "Quiet hours", hint: "Nothing is sent then, such as 22:00-07:00." },
  { name: "digest", label: "Digest", hint: "Everything as one message at these times, such as daily 08:00." },
  { name: "zone", label: "Zone", hint: "Of these hours and times." },
  { name: "cool_down", label: "Cool-down", hint: "How long nothing more is told of trouble that comes back." },
  { name: "note", label: "Note", hint: "What it is." },
] as const;
type Name = (typeof FIELDS)[number]["name"];
const REMOVABLE: readonly Name[] = ["quiet", "digest", "note"];

export function ChannelDialog({ channel, onClose }: ChannelDialogProps) {
  const form = useId();
  const add = useAddChannel();
  const [name, setName] = useState(channel?.name ?? "");
  const [url, setUrl] = useState("");
  const [values, setValues] = useState<Record<Name, string>>({
    quiet: channel?.quiet ?? "",
    digest: channel?.digest ?? "",
    zone: channel?.zone ?? "",
    cool_down: channel?.cool_down ?? "",
    note: channel?.note ?? "",
  });
  const errors = add.error instanceof ProblemError ? add.error.fields : {};
  const isShown = Object.keys(errors).length > 0;

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const given = FIELDS.flatMap(({ name: field }): [Name, string][] => {
      const value = values[field].trim();
      if (value !== "") return [[field, value]];
      return channel !== null && REMOVABLE.includes(field) ? [[field, "none"]] : [];
    });
    const wanted = { name: name.trim(), ...(url.trim() === "" ? {} : { url: url.trim() }), ...Object.fromEntries(given) };
    add.mutate(wanted, { onSuccess: onClose });
  };

  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={channel === null ? "New channel" : `Channel ${channel.name}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} variant="primary" busy={add.isPending}>
            {channel === null ? "Add channel" : "Save channel"}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-4">
        {add.error !== null && !isShown && <ProblemNote error={add.error} />}
        {channel === null && (
          <TextField
            label="Name"
            hint="What schedules and rules call it, such as phone."
            required
            error={errors["name"]}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
        <TextField
          label="URL"
          type="password"
          autoComplete="off"
          spellCheck={false}
          hint={
            channel === null
              ? "As apprise writes it: mailto://…, tgram://…, json://…; or where it is: env:NAME, file:PATH. It is never shown."
              : `Left empty, it stays ${channel.url}.`
          }
          required={channel === null}
          error={errors["url"]}
          value={url}
          onChange={(event) => setUrl(event.target.value)}
        />
        {FIELDS.map(({ name: field, label, hint }) => (
          <TextField
            key={field}
            label={label}
            hint={hint}
            error={errors[field]}
            value={values[field]}
            onChange={(event) => setValues({ ...values, [field]: event.target.value })}
          />
        ))}
      </form>
    </Dialog>
  );
}
