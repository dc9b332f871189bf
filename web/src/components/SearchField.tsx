/** A field to search with: `/` goes to it, Escape empties it, what is typed is told after a short rest. */

import { useEffect, useRef, useState } from "react";
import { controlClass } from "@/components/Field";
import { Icon } from "@/components/Icon";
import { Kbd } from "@/components/Kbd";
import { useShortcut } from "@/state/shortcuts";

interface SearchFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** Milliseconds of rest before onChange is called. */
  rest?: number;
  /** Of several on a page only one is reached by `/`. */
  slash?: boolean;
}

export function SearchField({ label, value, onChange, rest = 200, slash = true }: SearchFieldProps) {
  const [text, setText] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  const told = useRef(value);
  useShortcut("/", () => input.current?.focus(), { label: "Search", enabled: slash });

  useEffect(() => {
    // A change from outside (the address, a cleared filter) shows in the field; our own does not come back to it.
    if (value !== told.current) {
      told.current = value;
      setText(value);
    }
  }, [value]);
  useEffect(() => {
    if (text === told.current) return undefined;
    const timer = setTimeout(() => {
      told.current = text;
      onChange(text);
    }, rest);
    return () => clearTimeout(timer);
  }, [text, rest, onChange]);

  return (
    <div className="relative w-full sm:w-64">
      <Icon
        name="search"
        size={14}
        className="pointer-events-none absolute top-1/2 left-2.5 -translate-y-1/2 text-muted"
      />
      <input
        ref={input}
        type="search"
        aria-label={label}
        placeholder={label}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          if (text === "") input.current?.blur();
          setText("");
        }}
        className={`${controlClass} h-8 pl-8 pointer-coarse:h-9 [&::-webkit-search-cancel-button]:appearance-none`}
      />
      {slash && text === "" && (
        <span className="pointer-events-none absolute top-1/2 right-2 -translate-y-1/2 pointer-coarse:hidden">
          <Kbd keys="/" />
        </span>
      )}
    </div>
  );
}
