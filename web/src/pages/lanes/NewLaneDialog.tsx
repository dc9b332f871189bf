/** Makes a lane: a name, and how many of its runs may be under way at once. */

import { type FormEvent, useId, useState } from "react";
import { ProblemError } from "@/api/client";
import { useLanes, useMakeLane } from "@/api/queries/lanes";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { ProblemNote } from "@/components/ProblemNote";
import { useToast } from "@/components/Toast";

export function NewLaneDialog({ onClose }: { onClose: () => void }) {
  const form = useId();
  const [name, setName] = useState("");
  const [limit, setLimit] = useState("5");
  const make = useMakeLane();
  const say = useToast();
  const wanted = name.trim();
  const isTaken = useLanes().data?.items.some((lane) => lane.name === wanted) ?? false;
  const fields = make.error instanceof ProblemError ? make.error.fields : {};
  const save = (event: FormEvent): void => {
    event.preventDefault();
    // The dialog is drawn elsewhere, but its events go on to the page.
    event.stopPropagation();
    if (wanted === "" || isTaken || make.isPending) return;
    make.mutate(
      { name: wanted, limit: Number(limit) },
      {
        onSuccess: (lane) => {
          // Somebody else made it meanwhile: the field says so.
          if (lane === null) return;
          say({ title: `Lane ${wanted} is made` });
          onClose();
        },
      },
    );
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title="New lane"
      description="Schedules and tasks that name it share its limit, on all nodes together."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} variant="primary" busy={make.isPending}>
            Make lane
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={save} className="flex flex-col gap-4">
        <TextField
          label="Name"
          required
          maxLength={200}
          placeholder="reports"
          autoComplete="off"
          spellCheck={false}
          error={isTaken ? `There is a lane ${wanted} already.` : fields["name"]}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <TextField
          label="Limit"
          hint="So many of its runs are under way at once."
          type="number"
          min={1}
          required
          error={fields["limit"]}
          value={limit}
          onChange={(event) => setLimit(event.target.value)}
        />
        {make.error !== null && Object.keys(fields).length === 0 && <ProblemNote error={make.error} />}
      </form>
    </Dialog>
  );
}
