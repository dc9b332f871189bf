/** Who gets a message: the name of a task, or what the agent is. */

import { useId } from "react";
import { useProjects } from "@/api/queries/projects";
import { useKnownTasks } from "@/api/queries/tasks";
import type { FieldProblem } from "@/api/types";
import { TextArea, TextField } from "@/components/Field";
import { Select } from "@/components/Select";
import type { Draft } from "@/pages/sessions/draft";

interface RecipientFieldsProps {
  draft: Draft;
  onDraft: (changes: Partial<Draft>) => void;
  /** What the server did not take, by field. */
  fields: Record<string, FieldProblem>;
}

export function RecipientFields(props: RecipientFieldsProps) {
  return props.draft.to === "task" ? <TaskFields {...props} /> : <AgentFields {...props} />;
}

function TaskFields({ draft, onDraft, fields }: RecipientFieldsProps) {
  const tasks = useKnownTasks() ?? [];
  const list = useId();
  return (
    <>
      <TextField
        label="Task"
        hint="It is called with the messages as a list, payloads."
        required
        list={list}
        autoComplete="off"
        error={fields["task"]}
        value={draft.task}
        onChange={(event) => onDraft({ task: event.target.value })}
      />
      <datalist id={list}>
        {tasks.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}

function AgentFields({ draft, onDraft, fields }: RecipientFieldsProps) {
  const projects = useProjects().data?.items ?? [];
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Model"
          placeholder="the agent's own"
          error={fields["agent.model"]}
          value={draft.model}
          onChange={(event) => onDraft({ model: event.target.value })}
        />
        <TextField
          label="CLI"
          placeholder="claude"
          error={fields["agent.cli"]}
          value={draft.cli}
          onChange={(event) => onDraft({ cli: event.target.value })}
        />
      </div>
      <Select
        label="Project"
        hint="In whose folder the agent works."
        options={[{ value: "", label: "None" }, ...projects.map((each) => each.name)]}
        error={fields["project"]}
        value={draft.project}
        onChange={(project) => onDraft({ project })}
      />
      <TextArea
        label="System prompt"
        hint="Added to the agent's own."
        rows={2}
        error={fields["agent.system"]}
        value={draft.system}
        onChange={(event) => onDraft({ system: event.target.value })}
      />
    </>
  );
}
