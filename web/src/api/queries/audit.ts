/** The audit log: who did what through which door. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { api } from "@/api/client";
import { keys } from "@/api/keys";
import { pagesOf } from "@/api/queries/pages";
import type { AuditEntry } from "@/api/types";
import { instantOf } from "@/state/since";

export interface AuditFilter {
  who?: string;
  door?: string;
  verb?: string;
  object?: string;
  /** How far back, in a word of state/since. */
  since?: string;
}

export function useAudit(filter: AuditFilter) {
  const { since, ...rest } = filter;
  return useInfiniteQuery(
    pagesOf<AuditEntry>([...keys.audit, filter], (cursor, signal) =>
      api.GET("/api/audit", { params: { query: { ...rest, from: instantOf(since), cursor } }, signal }),
    ),
  );
}
