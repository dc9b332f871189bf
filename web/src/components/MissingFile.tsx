/** Stands where a part of the page could not be loaded, until the server is there to load it from. */

import { useEffect } from "react";
import { type FileMissing, reloadPage, reloadPageOnce } from "@/api/files";
import { live } from "@/api/live";
import { ProblemNote } from "@/components/ProblemNote";

export function MissingFile({ error }: { error: FileMissing }) {
  useEffect(() => {
    // A server that answers has another version of the page; one that is away is waited for.
    void reloadPageOnce();
    return live().onReconnected(() => void reloadPageOnce());
  }, []);
  return <ProblemNote error={error} onRetry={() => void reloadPage()} />;
}
