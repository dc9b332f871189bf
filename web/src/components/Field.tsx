/** A label, a control, a hint, and what the server said about it. */

import { type ComponentProps, type ReactNode, useId } from "react";
import type { FieldProblem } from "@/api/types";
import { classes } from "@/components/classes";
import { Icon } from "@/components/Icon";

export type FieldError = FieldProblem | string | null | undefined;

export const controlClass =
  "w-full rounded-md border border-control bg-surface px-2.5 text-sm text-ink aria-invalid:border-bad disabled:opacity-60 focus-visible:outline-offset-0 max-sm:text-base";

/** What the control inside a field needs, so that readers hear its label, hint and error. */
export interface ControlProps {
  id: string;
  "aria-invalid"?: true;
  "aria-describedby"?: string;
}

export interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: FieldError;
  /** The label is only read out, not shown. */
  hideLabel?: boolean;
  className?: string;
}

export function Field({
  label,
  hint,
  error,
  hideLabel = false,
  className,
  children,
}: FieldProps & { children: (control: ControlProps) => ReactNode }) {
  const id = useId();
  const problem = typeof error === "string" ? { field: null, message: error } : (error ?? null);
  const described = classes(hint !== undefined && `${id}-hint`, problem !== null && `${id}-error`);
  return (
    <div className={classes("flex min-w-0 flex-col gap-1", className)}>
      <label htmlFor={id} className={hideLabel ? "sr-only" : "text-sm font-medium"}>
        {label}
      </label>
      {children({
        id,
        "aria-invalid": problem === null ? undefined : true,
        "aria-describedby": described === "" ? undefined : described,
      })}
      {problem !== null && (
        <p id={`${id}-error`} className="flex gap-1.5 text-xs text-bad">
          <Icon name="warning" size={13} className="mt-0.5" />
          <span>
            {problem.message}
            {problem.hint ? <span className="block text-muted">{problem.hint}</span> : null}
          </span>
        </p>
      )}
      {hint !== undefined && (
        <p id={`${id}-hint`} className="text-xs text-muted">
          {hint}
        </p>
      )}
    </div>
  );
}

type InputProps = FieldProps & Omit<ComponentProps<"input">, "id" | "className">;

export function TextField({ label, hint, error, hideLabel, className, ...rest }: InputProps) {
  return (
    <Field {...{ label, hint, error, hideLabel, className }}>
      {(control) => <input {...rest} {...control} className={classes(controlClass, "h-8 pointer-coarse:h-9")} />}
    </Field>
  );
}

type AreaProps = FieldProps & Omit<ComponentProps<"textarea">, "id" | "className"> & { mono?: boolean };

export function TextArea({ label, hint, error, hideLabel, className, mono = false, ...rest }: AreaProps) {
  return (
    <Field {...{ label, hint, error, hideLabel, className }}>
      {(control) => (
        <textarea rows={3} {...rest} {...control} className={classes(controlClass, "py-1.5", mono && "font-mono")} />
      )}
    </Field>
  );
}
