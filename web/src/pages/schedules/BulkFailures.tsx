import { Link } from "@tanstack/react-router";
import type { Bulk } from "@/api/queries/schedules";
import type { BulkAnswer } from "@/api/types";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { counted } from "@/time/format";

/** What happened to those that it worked for. */
export const DONE: Record<Bulk["action"], string> = {
  enable: "enabled",
  disable: "paused",
  trigger: "started",
  remove: "removed",
};

interface Props {
  action: Bulk["action"];
  answer: BulkAnswer;
  onClose: () => void;
}

/** What was done and what was not, each with the reason that the server gave. */
export function BulkFailures({ action, answer, onClose }: Props) {
  return (
    <Dialog
      open
      wide
      onOpenChange={(open) => !open && onClose()}
      title={`${counted(answer.failed.length, "schedule was", "schedules were")} not ${DONE[action]}`}
      description={
        answer.done.length > 0
          ? `${counted(answer.done.length, "other was", "others were")} ${DONE[action]}.`
          : "No schedule was changed."
      }
      footer={<Button onClick={onClose}>Close</Button>}
    >
      <ul className="divide-y divide-line rounded-lg border border-line">
        {answer.failed.map(({ name, problem }) => (
          <li key={name} className="px-3 py-2 text-sm">
            <Link to="/schedules/$name" params={{ name }} className="font-medium hover:underline">
              {name}
            </Link>
            <p className="text-muted">{problem.detail ?? problem.title}</p>
            {Object.entries(problem.checks ?? {}).map(([check, reason]) => (
              <p key={check} className="text-bad">
                {check}: {reason}
              </p>
            ))}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
