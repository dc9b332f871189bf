/** Keeps a fault in one part of the page from taking the rest with it. */

import { Component, type ReactNode } from "react";
import { FileMissing } from "@/api/files";
import { MissingFile } from "@/components/MissingFile";
import { ProblemNote } from "@/components/ProblemNote";

interface ErrorBoundaryProps {
  /** Another value starts it anew, such as the address. */
  resetKey?: string;
  children: ReactNode;
}

export class ErrorBoundary extends Component<ErrorBoundaryProps, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override componentDidUpdate(before: ErrorBoundaryProps): void {
    if (before.resetKey !== this.props.resetKey && this.state.error !== null) this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="p-4">
        {error instanceof FileMissing ? (
          <MissingFile error={error} />
        ) : (
          <ProblemNote error={error} onRetry={() => this.setState({ error: null })} />
        )}
      </div>
    );
  }
}
