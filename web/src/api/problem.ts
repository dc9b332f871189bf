/** What the server says when it says no (RFC 9457), as an error that a form and a note can show. */

import type { FieldProblem, Problem } from "@/api/types";

export class ProblemError extends Error {
  readonly problem: Problem;
  readonly status: number;
  /** How many seconds to wait before another try, if the server said so. */
  readonly retryAfter: number | null;

  constructor(problem: Problem, retryAfter: number | null = null) {
    super(problem.detail ?? problem.title);
    this.name = "ProblemError";
    this.problem = problem;
    this.status = problem.status;
    this.retryAfter = retryAfter;
  }

  /** The problems by field: {"policy.retry.max": …}. */
  get fields(): Record<string, FieldProblem> {
    const found: Record<string, FieldProblem> = {};
    for (const error of this.problem.errors ?? []) {
      if (error.field !== null && !(error.field in found)) found[error.field] = error;
    }
    return found;
  }
}

/** Status 0: no answer came at all. */
export const UNREACHABLE = 0;

export function unreachable(): ProblemError {
  return new ProblemError({
    type: "/problems/unreachable",
    title: "No answer",
    status: UNREACHABLE,
    detail: "The server does not answer.",
    errors: [{ field: null, message: "", hint: "Check whether 'ostinato up' or 'ostinato web' is still running." }],
  });
}

export async function readProblem(response: Response): Promise<ProblemError> {
  const wait = Number(response.headers.get("Retry-After"));
  const retryAfter = Number.isFinite(wait) && wait > 0 ? wait : null;
  const type = response.headers.get("Content-Type") ?? "";
  if (type.includes("json")) {
    try {
      const body = (await response.json()) as Partial<Problem>;
      return new ProblemError(
        {
          ...body,
          type: body.type ?? "about:blank",
          title: body.title ?? response.statusText,
          status: response.status,
        },
        retryAfter,
      );
    } catch {
      // A cut-off body: the status line has to do.
    }
  }
  const title = response.statusText || `Status ${response.status}`;
  return new ProblemError({ type: "about:blank", title, status: response.status }, retryAfter);
}
