/** A query in place: its skeleton, its error with a retry, or its data. Data that was there stays when a reload fails. */

import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { PageHeader } from "@/components/PageHeader";
import { ProblemNote } from "@/components/ProblemNote";
import { SkeletonRows } from "@/components/Skeleton";

interface QueryViewProps<T> {
  query: Pick<UseQueryResult<T>, "data" | "error" | "refetch">;
  skeleton?: ReactNode;
  /** For a query that is a whole page: its title, and where its like are listed, when there is no such thing. */
  page?: { title: string; list: { label: string; to: string } };
  children: (data: T) => ReactNode;
}

export function QueryView<T>({ query, skeleton, page, children }: QueryViewProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error !== null) {
    return (
      <>
        {page !== undefined && <PageHeader title={page.title} />}
        <ProblemNote error={query.error} onRetry={() => void query.refetch()} list={page?.list} />
      </>
    );
  }
  return skeleton ?? <SkeletonRows />;
}
