/** One of a few: the browser's own select, which every phone and reader knows. */

import type { ComponentProps } from "react";
import { classes } from "@/components/classes";
import { controlClass, Field, type FieldProps } from "@/components/Field";
import { Icon } from "@/components/Icon";

export interface Option {
  value: string;
  label: string;
}

type SelectProps = FieldProps &
  Omit<ComponentProps<"select">, "id" | "className" | "children" | "onChange"> & {
    options: readonly (Option | string)[];
    onChange: (value: string) => void;
  };

export function Select({ label, hint, error, hideLabel, className, options, onChange, ...rest }: SelectProps) {
  return (
    <Field {...{ label, hint, error, hideLabel, className }}>
      {(control) => (
        <span className="relative block">
          <select
            {...rest}
            {...control}
            onChange={(event) => onChange(event.target.value)}
            className={classes(controlClass, "h-8 appearance-none pr-8 pointer-coarse:h-9")}
          >
            {options.map((option) => {
              const { value, label: words } = typeof option === "string" ? { value: option, label: option } : option;
              return (
                <option key={value} value={value}>
                  {words}
                </option>
              );
            })}
          </select>
          <Icon
            name="chevronDown"
            size={14}
            className="pointer-events-none absolute top-1/2 right-2 -translate-y-1/2 text-muted"
          />
        </span>
      )}
    </Field>
  );
}
