// Why a run did not simply succeed: the server's words, for people.

import type { Cause } from "@/api/types";

/** Complete by its type: a cause that the server adds is missing here, and does not compile. */
const KNOWN: Record<Cause, true> = {
  overlap: true,
  check: true,
  gate: true,
  budget: true,
  upstream: true,
  debounced: true,
  dropped: true,
  stale: true,
  interrupted: true,
  session_stopped: true,
  lane_cleared: true,
  downtime: true,
  outside_window: true,
  expired: true,
  late: true,
  raised: true,
  bad_arguments: true,
  aborted: true,
  crashed: true,
  exit_status: true,
  http_status: true,
  no_answer: true,
  request_refused: true,
  agent_error: true,
  logged_out: true,
  rate_limited: true,
  overloaded: true,
  no_network: true,
  timed_out: true,
  silent: true,
  node_lost: true,
  cut_off: true,
  cancelled: true,
  removed: true,
  unknown_task: true,
  not_loadable: true,
  not_started: true,
  not_recorded: true,
  errors: true,
  snoozed: true,
  postponed: true,
};

export const CAUSES = Object.keys(KNOWN) as Cause[];

export const causeText = (cause: Cause): string => cause.replaceAll("_", " ");
