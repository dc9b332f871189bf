/** What went wrong, in the server's words, with its hint and a way to try again. */

import { Link } from "@tanstack/react-router";
import { ProblemError } from "@/api/client";
import { Button, buttonClass } from "@/components/Button";
import { Icon } from "@/components/Icon";

interface ProblemNoteProps {
  error: unknown;
  onRetry?: () => void;
  /** Shown instead of a retry when the thing does not exist. */
  list?: { label: string; to: string };
}

export function ProblemNote({ error, onRetry, list }: ProblemNoteProps) {
  const problem = error instanceof ProblemError ? error.problem : null;
  const text =
    problem === null ? (error instanceof Error ? error.message : String(error)) : (problem.detail ?? problem.title);
  const hints = (problem?.errors ?? []).map((each) => each.hint).filter((hint) => hint && !text.includes(hint));
  const isMissing = list !== undefined && problem?.status === 404;
  return (
    <div
      role="alert"
      className="flex flex-wrap items-start gap-3 rounded-lg border border-bad/35 bg-bad-soft px-4 py-3"
    >
      <Icon name="warning" className="mt-0.5 text-bad" />
      <div className="min-w-0 flex-1 basis-48 text-sm">
        <p className="max-h-40 overflow-y-auto text-ink">{text}</p>
        {hints.map((hint) => (
          <p key={hint} className="text-muted">
            {hint}
          </p>
        ))}
        {Object.entries(problem?.checks ?? {}).map(([name, reason]) => (
          <p key={name} className="text-ink">
            <span className="font-medium">{name}</span>: {reason}
          </p>
        ))}
      </div>
      {isMissing && (
        <Link to={list.to} className={buttonClass("secondary", "small")}>
          {list.label}
        </Link>
      )}
      {onRetry !== undefined && !isMissing && (
        <Button size="small" icon="refresh" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
