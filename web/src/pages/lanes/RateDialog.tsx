/** How many runs of a lane may start in a time. There only while it is asked: it begins with the rate of now. */

import { type FormEvent, useId, useState } from "react";
import { ProblemError } from "@/api/client";
import { useResizeLane } from "@/api/queries/lanes";
import type { Lane } from "@/api/types";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { useToast } from "@/components/Toast";

interface RateDialogProps {
  lane: Lane;
  onClose: () => void;
}

export function RateDialog({ lane, onClose }: RateDialogProps) {
  const form = useId();
  const [rate, setRate] = useState(lane.rate ?? "");
  const resize = useResizeLane();
  const say = useToast();
  const error = resize.error instanceof ProblemError ? (resize.error.fields["rate"] ?? resize.error.message) : null;
  const save = (event: FormEvent): void => {
    event.preventDefault();
    const wanted = rate.trim() === "" ? "none" : rate.trim();
    resize.mutate(
      { name: lane.name, rate: wanted },
      {
        onSuccess: () => {
          say({
            title: wanted === "none" ? `Lane ${lane.name} has no rate` : `Lane ${lane.name} starts at most ${wanted}`,
          });
          onClose();
        },
      },
    );
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`Rate of lane ${lane.name}`}
      description="How many of its runs may start in a period, on all nodes together."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} variant="primary" busy={resize.isPending}>
            Save
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={save}>
        <TextField
          label="Rate"
          hint="Such as 10/m or 100/h; leave it empty for no limit."
          placeholder="10/m"
          error={error}
          value={rate}
          onChange={(event) => setRate(event.target.value)}
        />
      </form>
    </Dialog>
  );
}
