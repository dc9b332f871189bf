import type { ReactNode } from "react";
import { useKnownTasks } from "@/api/queries/tasks";
import type { FieldProblem, Kind } from "@/api/types";
import { TextArea, TextField } from "@/components/Field";
import { Segmented } from "@/components/Segmented";
import { Select } from "@/components/Select";
import { Tabs } from "@/components/Tabs";
import { AddedFields } from "./AddedFields";
import { type AddedValues, addedValues } from "./addedValues";
import type { WorkValues } from "./workValues";

interface Props {
  work: WorkValues;
  /** Those that packages add. */
  kinds: readonly Kind[];
  onChange: (changes: Partial<WorkValues>) => void;
  errors: Record<string, FieldProblem>;
}

type TextName = Exclude<keyof WorkValues, "kind" | "bodyKind" | keyof AddedValues>;

const INTERPRETERS = ["bash", "sh", "zsh", "fish", "python3", "node", "perl", "ruby", "php"];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/** What to do: one tab for each kind of work. What is rarely needed is folded. */
export function WorkSection({ work, kinds, onChange, errors }: Props) {
  const bind = (name: TextName) => ({
    name: `work.${name}`,
    value: work[name],
    error: errors[`work.${name}`],
    onChange: (event: { target: { value: string } }) => onChange({ [name]: event.target.value }),
  });
  const tabs: { id: string; label: string; content: ReactNode }[] = [
    {
      id: "shell",
      label: "Shell",
      content: <Shell bind={bind} open={hasError(errors, ["interpreter", "env", "folder", "user", "nice", "memory", "cpu"])} />,
    },
    {
      id: "agent",
      label: "Agent",
      content: (
        <Agent
          bind={bind}
          open={hasError(errors, [
            "cli",
            "model",
            "system",
            "permission_mode",
            "allowed_tools",
            "mcp_config",
            "env",
            "folder",
          ])}
        />
      ),
    },
    { id: "http", label: "HTTP", content: <Http work={work} bind={bind} onChange={onChange} errors={errors} /> },
    { id: "function", label: "Task", content: <Task work={work} bind={bind} /> },
    { id: "check_in", label: "Check-in", content: <CheckIn bind={bind} /> },
    ...kinds.map((kind) => ({
      id: kind.name,
      label: kind.label,
      content: (
        <Column>
          <AddedFields
            kind={kind}
            texts={work.texts}
            errors={errors}
            onChange={(texts) => onChange({ texts: { ...work.texts, ...texts } })}
          />
          {kind.needs_admin && <AdminNote what={kind.name} />}
        </Column>
      ),
    })),
  ];
  function choose(name: string): void {
    const added = kinds.find((kind) => kind.name === name);
    onChange({ kind: name, ...(added === undefined ? { added: null, texts: {}, stored: null } : addedValues(added)) });
  }
  return (
    <Tabs
      label="Kind of work"
      value={work.kind}
      onChange={choose}
      tabs={tabs}
    />
  );
}

type Bind = (name: TextName) => {
  name: string;
  value: string;
  error: FieldProblem | undefined;
  onChange: (event: { target: { value: string } }) => void;
};

function hasError(errors: Record<string, FieldProblem>, names: string[]): boolean {
  return names.some((name) => `work.${name}` in errors);
}

function Column({ children }: { children: ReactNode }) {
  return <div className="flex flex-col gap-3">{children}</div>;
}

function More({ open, children }: { open: boolean; children: ReactNode }) {
  return (
    <details open={open || undefined}>
      <summary className="w-fit rounded text-xs font-medium text-accent hover:underline">More</summary>
      <div className="mt-3 grid gap-3 sm:grid-cols-2">{children}</div>
    </details>
  );
}

function AdminNote({ what }: { what: string }) {
  return <p className="text-xs text-muted">Only an admin may create or change {what} work.</p>;
}

const ENVIRONMENT =
  'One NAME=value on each line. Write several lines as NAME="one\\ntwo", and secrets as references: TOKEN=env:TOKEN or file:PATH.';

function Shell({ bind, open }: { bind: Bind; open: boolean }) {
  return (
    <Column>
      <TextArea
        label="Command"
        mono
        rows={3}
        spellCheck={false}
        placeholder="echo hello"
        hint='A text for bash, or for sh where there is no bash. A JSON list such as ["python", "job.py"] runs without a shell.'
        {...bind("command")}
      />
      <AdminNote what="shell" />
      <More open={open}>
        <TextField
          label="Interpreter"
          list="interpreters"
          autoComplete="off"
          spellCheck={false}
          placeholder="bash, or sh without it"
          hint="What runs the text: a program’s name, such as python3, or its whole path."
          {...bind("interpreter")}
        />
        <datalist id="interpreters">
          {INTERPRETERS.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <TextField label="Folder" hint="Relative to the project’s folder." {...bind("folder")} />
        <TextField label="User" {...bind("user")} />
        <TextField label="Nice" placeholder="0" hint="-20 to 19; a higher value gives way to others." {...bind("nice")} />
        <TextField label="Memory" placeholder="no limit" hint="Such as 512MB." {...bind("memory")} />
        <TextField label="Processor time" placeholder="no limit" hint="Seconds." {...bind("cpu")} />
        <TextArea label="Environment" mono hint={ENVIRONMENT} className="sm:col-span-2" {...bind("env")} />
      </More>
    </Column>
  );
}

function Agent({ bind, open }: { bind: Bind; open: boolean }) {
  const context = bind("context");
  const named = context.value.startsWith("session:");
  return (
    <Column>
      <TextArea label="Prompt" rows={5} placeholder="Summarise the new issues of this project." {...bind("prompt")} />
      <AdminNote what="agent" />
      <div className="grid gap-3 sm:grid-cols-2">
        <Select
          label="Context"
          name={context.name}
          error={context.error}
          value={named ? "session:" : context.value}
          onChange={(value) => context.onChange({ target: { value } })}
          options={[
            { value: "isolated", label: "isolated: a fresh conversation each time" },
            { value: "group", label: "group: one conversation for the project" },
            { value: "session:", label: "session: a conversation with a name" },
          ]}
        />
        {named && (
          <TextField
            label="Name of the conversation"
            value={context.value.slice(8)}
            onChange={(event) => context.onChange({ target: { value: `session:${event.target.value}` } })}
          />
        )}
      </div>
      <More open={open}>
        <TextField label="CLI" placeholder="claude" hint="One of the agents in the settings." {...bind("cli")} />
        <TextField label="Model" placeholder="its own default" {...bind("model")} />
        <TextField label="Permission mode" {...bind("permission_mode")} />
        <TextField label="Allowed tools" hint="Names, separated by commas." {...bind("allowed_tools")} />
        <TextField label="MCP config" {...bind("mcp_config")} />
        <TextField label="Folder" hint="Relative to the project’s folder." {...bind("folder")} />
        <TextArea label="System prompt" className="sm:col-span-2" {...bind("system")} />
        <TextArea label="Environment" mono hint={ENVIRONMENT} className="sm:col-span-2" {...bind("env")} />
      </More>
    </Column>
  );
}

function CheckIn({ bind }: { bind: Bind }) {
  return (
    <Column>
      <p className="text-sm text-muted">
        A machine does the work by itself, such as from its own crontab, and calls the ping address of this schedule, which
        its page makes.
      </p>
      <TextField
        label="Late after"
        placeholder="10m"
        hint="How long after its due time it may check in."
        {...bind("late_after")}
      />
    </Column>
  );
}

function Http({ work, bind, onChange, errors }: Omit<Props, "kinds"> & { bind: Bind }) {
  const method = bind("method");
  return (
    <Column>
      <div className="grid grid-cols-[7rem_minmax(0,1fr)] gap-3">
        <Select
          label="Method"
          name={method.name}
          error={method.error}
          value={work.method}
          onChange={(value) => onChange({ method: value })}
          options={[...new Set([work.method, ...METHODS])]}
        />
        <TextField label="URL" type="url" placeholder="https://example.com/hook" {...bind("url")} />
      </div>
      <div className="flex flex-col gap-2">
        <Segmented
          label="Body"
          value={work.bodyKind}
          options={[
            { value: "none", label: "No body" },
            { value: "json", label: "JSON" },
            { value: "text", label: "Text" },
          ]}
          onChange={(bodyKind) => onChange({ bodyKind })}
        />
        {work.bodyKind !== "none" && (
          <TextArea label={work.bodyKind === "json" ? "JSON body" : "Text body"} mono rows={4} {...bind("body")} />
        )}
      </div>
      <More open={hasError(errors, ["headers", "expect"])}>
        <TextArea
          label="Headers"
          mono
          hint="One Name: value on each line. Write secrets as references: Authorization: Bearer env:TOKEN"
          className="sm:col-span-2"
          {...bind("headers")}
        />
        <TextField
          label="Expected status"
          placeholder="2xx"
          hint="Such as 204 or 2xx; any other status fails the run."
          {...bind("expect")}
        />
      </More>
    </Column>
  );
}

function Task({ work, bind }: { work: WorkValues; bind: Bind }) {
  const tasks = useKnownTasks();
  const hint =
    tasks === undefined || work.task === ""
      ? "A Python function that a node has registered."
      : tasks.includes(work.task)
        ? undefined
        : "No node knows this task at the moment; its runs wait until one does.";
  return (
    <Column>
      <TextField
        label="Task"
        list="known-tasks"
        autoComplete="off"
        spellCheck={false}
        placeholder={tasks?.[0] ?? "send_report"}
        hint={hint}
        {...bind("task")}
      />
      <datalist id="known-tasks">
        {tasks?.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div className="grid gap-3 sm:grid-cols-2">
        <TextArea
          label="Arguments"
          mono
          placeholder='["site", 3]'
          hint="A JSON list."
          spellCheck={false}
          {...bind("args")}
        />
        <TextArea
          label="Named arguments"
          mono
          placeholder='{"full": true}'
          hint="A JSON object."
          spellCheck={false}
          {...bind("kwargs")}
        />
      </div>
    </Column>
  );
}
