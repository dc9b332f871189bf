/** An address that leads nowhere. */

import { Link } from "@tanstack/react-router";
import { buttonClass } from "@/components/Button";
import { EmptyState } from "@/components/EmptyState";
import { PageHeader } from "@/components/PageHeader";

export function NotFoundPage() {
  return (
    <>
      <PageHeader title="Not found" />
      <EmptyState
        icon="search"
        title="There is no such page"
        text="The address may be mistyped, or belong to another version."
        action={
          <Link to="/" className={buttonClass("primary")}>
            Go to the overview
          </Link>
        }
      />
    </>
  );
}
