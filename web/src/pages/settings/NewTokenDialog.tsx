/** Makes a token and shows it, this once. */

import { type FormEvent, useId, useState } from "react";
import { ProblemError } from "@/api/client";
import { useMakeToken } from "@/api/queries/tokens";
import type { MadeToken, Role } from "@/api/types";
import { Banner } from "@/components/Banner";
import { Button } from "@/components/Button";
import { CopyButton } from "@/components/CopyButton";
import { Dialog } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { ProblemNote } from "@/components/ProblemNote";
import { Select } from "@/components/Select";

const ROLES = [
  { value: "viewer", label: "viewer: may read" },
  { value: "operator", label: "operator: may also run, stop and change" },
  { value: "admin", label: "admin: may do everything" },
] as const satisfies readonly { value: Role; label: string }[];

const EXPIRES = [
  { value: "", label: "never" },
  { value: "7d", label: "in 7 days" },
  { value: "30d", label: "in 30 days" },
  { value: "90d", label: "in 90 days" },
  { value: "365d", label: "in a year" },
];

interface NewTokenDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

export function NewTokenDialog({ open, onOpenChange }: NewTokenDialogProps) {
  const form = useId();
  const make = useMakeToken();
  const close = (next: boolean): void => {
    // What was shown once is not kept.
    if (!next) make.reset();
    onOpenChange(next);
  };
  const made = make.data;
  return (
    <Dialog
      open={open}
      onOpenChange={close}
      title={made === undefined ? "New token" : `Token ${made.name}`}
      steady={made !== undefined}
      footer={
        made === undefined ? (
          <>
            <Button onClick={() => close(false)}>Cancel</Button>
            <Button type="submit" form={form} variant="primary" busy={make.isPending}>
              Create token
            </Button>
          </>
        ) : (
          <Button variant="primary" onClick={() => close(false)}>
            Done
          </Button>
        )
      }
    >
      {made === undefined ? <TokenForm id={form} make={make} /> : <Shown token={made} />}
    </Dialog>
  );
}

function Shown({ token }: { token: MadeToken }) {
  return (
    <div className="flex flex-col gap-3">
      <Banner tone="warn" title="Copy the token now">
        It is shown only once: Ostinato keeps no copy of it.
      </Banner>
      <div className="flex items-center gap-2 rounded-md border border-line bg-sunken py-1.5 pr-1.5 pl-3">
        <code className="min-w-0 flex-1 font-mono text-xs break-all select-all">{token.token}</code>
        <CopyButton text={token.token} label="Copy the token" />
      </div>
    </div>
  );
}

function TokenForm({ id, make }: { id: string; make: ReturnType<typeof useMakeToken> }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [expires, setExpires] = useState("90d");
  const fields = make.error instanceof ProblemError ? make.error.fields : {};
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    make.mutate({ name: name.trim(), role, ...(expires === "" ? {} : { expires }) });
  };
  return (
    <form id={id} onSubmit={submit} className="flex flex-col gap-4">
      {make.error !== null && fields["name"] === undefined && <ProblemNote error={make.error} />}
      <TextField
        label="Name"
        hint="What it is for; the audit log shows this name."
        required
        error={fields["name"]}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Select
        label="Role"
        options={ROLES}
        value={role}
        onChange={(next) => setRole(ROLES.find((each) => each.value === next)?.value ?? "viewer")}
      />
      <Select label="Expires" options={EXPIRES} value={expires} onChange={setExpires} />
    </form>
  );
}
