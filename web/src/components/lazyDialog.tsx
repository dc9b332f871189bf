/** A dialog in a file of its own, loaded when it is first opened: the first page is drawn without it. */

import { type ComponentType, lazy, type ReactNode, Suspense, useState } from "react";
import { loadFile } from "@/api/files";
import { ErrorBoundary } from "@/components/ErrorBoundary";

/** Its place is where the note stands when the file does not come. */
export function lazyDialog<P extends { open: boolean }>(
  load: () => Promise<ComponentType<P>>,
): (props: P) => ReactNode {
  const Loaded = lazy(() => loadFile(load).then((component) => ({ default: component })));
  return function LazyDialog(props: P) {
    const [isWanted, setWanted] = useState(props.open);
    if (props.open && !isWanted) setWanted(true);
    if (!isWanted) return null;
    return (
      <ErrorBoundary>
        <Suspense fallback={null}>
          <Loaded {...props} />
        </Suspense>
      </ErrorBoundary>
    );
  };
}
