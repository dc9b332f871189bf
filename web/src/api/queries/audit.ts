/** The audit log: who did what through which door. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { api } from "@/api/client";
import { keys } from "@/api/keys";
import { pagesOf } from "@/api/queries/pages";
import type { AuditEntry } from "@/api/types";

export interface AuditFilter {
  who?: string;
  door?: string;
  verb?: string;
  object?: string;
  from?: string;
}

export function useAudit(filter: AuditFilter) {
  return useInfiniteQuery(
    pagesOf<AuditEntry>([...keys.audit, filter], (cursor, signal) =>
      api.GET("/api/audit", { params: { query: { ...filter, cursor } }, signal }),
    ),
  );
}
