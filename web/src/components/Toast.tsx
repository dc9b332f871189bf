/** Short words in the corner about what was just done, or what went wrong. */

import { Toast as Radix } from "radix-ui";
import { createContext, type ReactNode, useCallback, useContext, useState } from "react";
import { ProblemError } from "@/api/client";
import { Icon, type IconName } from "@/components/Icon";
import { IconButton } from "@/components/IconButton";

export interface ToastWords {
  title: string;
  text?: ReactNode;
  tone?: "good" | "bad" | "info";
  action?: { label: string; run: () => void };
}

type Say = (words: ToastWords) => void;

const ToastContext = createContext<Say>(() => undefined);

/** `say({title: "Lane paused"})`. */
export const useToast = (): Say => useContext(ToastContext);

/** For `onError`: says what the server said. */
export function useProblemToast(): (title: string) => (error: unknown) => void {
  const say = useToast();
  return useCallback(
    (title) => (error) => {
      const text = error instanceof ProblemError ? error.message : String(error);
      say({ title, text, tone: "bad" });
    },
    [say],
  );
}

const LOOK: Record<NonNullable<ToastWords["tone"]>, { icon: IconName; color: string }> = {
  good: { icon: "check", color: "text-good" },
  bad: { icon: "warning", color: "text-bad" },
  info: { icon: "info", color: "text-info" },
};

const MOST = 4;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<(ToastWords & { id: number })[]>([]);
  const say = useCallback<Say>((words) => {
    setToasts((before) => [...before, { ...words, id: performance.now() }].slice(-MOST));
  }, []);
  const remove = (id: number): void => setToasts((before) => before.filter((toast) => toast.id !== id));

  return (
    <ToastContext value={say}>
      <Radix.Provider swipeDirection="right" duration={6000}>
        {children}
        {toasts.map((toast) => (
          <OneToast key={toast.id} toast={toast} onClose={() => remove(toast.id)} />
        ))}
        <Radix.Viewport className="fixed right-3 bottom-[calc(4rem+env(safe-area-inset-bottom))] z-70 flex w-[min(22rem,calc(100vw-1.5rem))] flex-col gap-2 outline-none md:bottom-3" />
      </Radix.Provider>
    </ToastContext>
  );
}

function OneToast({ toast, onClose }: { toast: ToastWords; onClose: () => void }) {
  const { icon, color } = LOOK[toast.tone ?? "good"];
  return (
    <Radix.Root
      type={toast.tone === "bad" ? "foreground" : "background"}
      duration={toast.tone === "bad" ? 12_000 : undefined}
      onOpenChange={(open) => !open && onClose()}
      className="enter flex items-start gap-2.5 rounded-lg border border-line bg-raised py-2.5 pr-1.5 pl-3 shadow-raised"
    >
      <Icon name={icon} className={`mt-0.5 ${color}`} />
      <div className="min-w-0 flex-1">
        <Radix.Title className="text-sm font-medium">{toast.title}</Radix.Title>
        {toast.text !== undefined && (
          <Radix.Description className="line-clamp-6 text-xs text-muted">{toast.text}</Radix.Description>
        )}
        {toast.action !== undefined && (
          <Radix.Action asChild altText={toast.action.label}>
            <button
              type="button"
              onClick={toast.action.run}
              className="mt-1 text-xs font-medium text-accent hover:underline"
            >
              {toast.action.label}
            </button>
          </Radix.Action>
        )}
      </div>
      <Radix.Close asChild>
        <IconButton icon="cross" label="Dismiss" className="-mt-1" />
      </Radix.Close>
    </Radix.Root>
  );
}
