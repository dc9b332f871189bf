/** What a schedule or a run does, as a person would write it: the command, the prompt, the request, the task. */

import type { ReactNode } from "react";
import type { AddedWork, Work } from "@/api/types";
import { CopyButton } from "@/components/CopyButton";
import { Icon } from "@/components/Icon";
import { workKind } from "@/components/workKind";

export function WorkView({ work }: { work: Work }) {
  const { label, icon } = workKind(work);
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <p className="flex items-center gap-1.5 text-xs font-medium text-muted">
        <Icon name={icon} size={14} />
        {label}
      </p>
      <Body work={work} />
    </div>
  );
}

function Body({ work }: { work: Work }) {
  switch (work.kind) {
    case "shell": {
      const command = typeof work.command === "string" ? work.command : work.command.map(quoted).join(" ");
      return (
        <>
          <Code text={command} />
          <Facts
            facts={[
              ["Interpreter", typeof work.command === "string" ? (work.interpreter ?? "bash, or sh without it") : null],
              ["Folder", work.folder],
              ["User", work.user],
              ["Nice", work.nice],
              ["Memory", work.memory === null ? null : bytes(work.memory)],
              ["Processor time", work.cpu === null ? null : `${work.cpu} s`],
              ["Without a shell", typeof work.command === "string" ? null : "yes"],
            ]}
          />
          <Pairs title="Environment" pairs={work.env} />
        </>
      );
    }
    case "agent":
      return (
        <>
          <Code text={work.prompt} prose />
          <Facts
            facts={[
              ["Context", work.context],
              ["CLI", work.cli],
              ["Model", work.model],
              ["Permission mode", work.permission_mode],
              ["Allowed tools", work.allowed_tools.length > 0 ? work.allowed_tools.join(", ") : null],
              ["MCP config", work.mcp_config],
              ["Folder", work.folder],
              ["System prompt", work.system],
            ]}
          />
          <Pairs title="Environment" pairs={work.env} />
        </>
      );
    case "http": {
      const body = work.json !== null && work.json !== undefined ? JSON.stringify(work.json, null, 2) : work.body;
      return (
        <>
          <Code text={`${work.method} ${work.url}`} />
          {body !== null && <Code text={body} />}
          <Facts facts={[["Expects", work.expect.join(", ")]]} />
          <Pairs title="Headers" pairs={work.headers} />
        </>
      );
    }
    case "function":
      return <Code text={callText(work.task, work.args, work.kwargs)} />;
    case "check_in":
      return <p className="text-sm">A machine does the work and checks in. It is late after {work.late_after}.</p>;
    case "unreadable":
      return (
        <>
          <p className="text-sm text-bad">{work.reason}</p>
          <Code text={work.text} />
        </>
      );
    default:
      return <Added work={work} />;
  }
}

/** The line, and every field that says something. */
function Added({ work }: { work: AddedWork }) {
  const { kind: _, line, ...fields } = work;
  const told = Object.entries(fields).filter(([, value]) => value !== line);
  return (
    <>
      <Code text={line} />
      <Facts facts={told.map(([name, value]) => [name.replaceAll("_", " "), factText(value)])} />
    </>
  );
}

function factText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(factText).join(", ");
  if (typeof value !== "object") return String(value as string | number | boolean);
  return Object.entries(value).map(([name, text]) => `${name}: ${factText(text)}`).join(", ");
}

/** `backup("site", full=true)`. */
function callText(task: string, args: readonly unknown[], kwargs: Record<string, unknown>): string {
  const given = [
    ...args.map((value) => JSON.stringify(value)),
    ...Object.entries(kwargs).map(([name, value]) => `${name}=${JSON.stringify(value)}`),
  ];
  const short = `${task}(${given.join(", ")})`;
  return short.length <= 90 ? short : `${task}(\n  ${given.join(",\n  ")}\n)`;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function bytes(count: number): string {
  const units = ["bytes", "KB", "MB", "GB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log(Math.max(1, count)) / Math.log(1024)));
  return `${Math.round((count / 1024 ** step) * 10) / 10} ${units[step]}`;
}

function Code({ text, prose = false }: { text: string; prose?: boolean }) {
  return (
    <div className="relative min-w-0 rounded-md border border-line bg-sunken">
      <pre
        // A long one is scrolled by keys, too.
        tabIndex={0}
        className={`max-h-72 overflow-auto py-2 pr-10 pl-3 text-xs break-words whitespace-pre-wrap ${prose ? "font-sans leading-5" : "font-mono"}`}
      >
        {text}
      </pre>
      <span className="absolute top-0.5 right-0.5">
        <CopyButton text={text} />
      </span>
    </div>
  );
}

function Facts({ facts }: { facts: [string, ReactNode][] }) {
  const told = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (told.length === 0) return null;
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-0.5 text-xs">
      {told.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Pairs({ title, pairs }: { title: string; pairs: Record<string, string> }) {
  const entries = Object.entries(pairs);
  if (entries.length === 0) return null;
  return (
    <details className="text-xs">
      <summary className="text-muted hover:text-ink">
        {title} ({entries.length})
      </summary>
      <ul className="mt-1 font-mono">
        {entries.map(([name, value]) => (
          <li key={name} className="break-all">
            {name}: {value}
          </li>
        ))}
      </ul>
    </details>
  );
}
