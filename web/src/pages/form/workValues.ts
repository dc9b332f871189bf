// The work of a schedule as the form holds it, in texts; from work to these, and from these to what is sent.

import type { AddedWork, Kind, NewWork, Work } from "@/api/types";
import { type AddedValues, addedRequest, addedValues } from "./addedValues";
import { commandOf } from "./policyFields";
import { type LocalErrors, json, pairs, readJson, readPairs } from "./workTexts";

export interface WorkValues extends AddedValues {
  kind: string;
  command: string;
  interpreter: string;
  env: string;
  folder: string;
  user: string;
  nice: string;
  memory: string;
  cpu: string;
  prompt: string;
  context: string;
  cli: string;
  model: string;
  system: string;
  permission_mode: string;
  allowed_tools: string;
  mcp_config: string;
  method: string;
  url: string;
  headers: string;
  bodyKind: "none" | "json" | "text";
  body: string;
  expect: string;
  task: string;
  args: string;
  kwargs: string;
  late_after: string;
}

export const NEW_WORK: WorkValues = {
  kind: "shell",
  added: null,
  texts: {},
  stored: null,
  command: "",
  interpreter: "",
  env: "",
  folder: "",
  user: "",
  nice: "",
  memory: "",
  cpu: "",
  prompt: "",
  context: "isolated",
  cli: "",
  model: "",
  system: "",
  permission_mode: "",
  allowed_tools: "",
  mcp_config: "",
  method: "GET",
  url: "",
  headers: "",
  bodyKind: "none",
  body: "",
  expect: "",
  task: "",
  args: "",
  kwargs: "",
  late_after: "",
};

const text = (value: string | number | null): string => (value === null ? "" : String(value));

export function workValues(work: Work, kinds: readonly Kind[]): WorkValues {
  switch (work.kind) {
    case "shell":
      return {
        ...NEW_WORK,
        kind: "shell",
        command: typeof work.command === "string" ? work.command : JSON.stringify(work.command),
        interpreter: text(work.interpreter),
        env: pairs(work.env, "="),
        folder: text(work.folder),
        user: text(work.user),
        nice: text(work.nice),
        memory: text(work.memory),
        cpu: text(work.cpu),
      };
    case "agent":
      return {
        ...NEW_WORK,
        kind: "agent",
        prompt: work.prompt,
        context: work.context,
        cli: work.cli === "claude" ? "" : work.cli,
        model: text(work.model),
        system: text(work.system),
        permission_mode: text(work.permission_mode),
        allowed_tools: work.allowed_tools.join(", "),
        mcp_config: text(work.mcp_config),
        env: pairs(work.env, "="),
        folder: text(work.folder),
      };
    case "http":
      return {
        ...NEW_WORK,
        kind: "http",
        method: work.method,
        url: work.url,
        headers: pairs(work.headers, ": "),
        bodyKind: work.json !== null && work.json !== undefined ? "json" : work.body === null ? "none" : "text",
        body: work.json !== null && work.json !== undefined ? json(work.json) : text(work.body),
        expect: work.expect.join(", ") === "2xx" ? "" : work.expect.join(", "),
      };
    case "function":
      return {
        ...NEW_WORK,
        kind: "function",
        task: work.task,
        args: work.args.length === 0 ? "" : json(work.args),
        kwargs: Object.keys(work.kwargs).length === 0 ? "" : json(work.kwargs),
      };
    case "check_in":
      return { ...NEW_WORK, kind: "check_in", late_after: work.late_after };
    case "unreadable":
      return NEW_WORK;
    default:
      return valuesOfAdded(work as AddedWork, kinds);
  }
}

function valuesOfAdded(work: AddedWork, kinds: readonly Kind[]): WorkValues {
  const kind = kinds.find((each) => each.name === work.kind);
  return kind === undefined ? NEW_WORK : { ...NEW_WORK, kind: kind.name, ...addedValues(kind, work) };
}

/** Only what is said; numbers as numbers where they are some. */
function said(fields: Record<string, string>): Record<string, string | number> {
  const given = Object.entries(fields).filter(([, value]) => value.trim() !== "");
  return Object.fromEntries(
    given.map(([name, value]) => [name, /^-?\d+$/.test(value.trim()) ? Number(value) : value.trim()]),
  );
}

export function workRequest(values: WorkValues, errors: LocalErrors): NewWork {
  const { added, texts, stored } = values;
  if (added !== null) return addedRequest({ added, texts, stored }, errors);
  const list = (given: string) =>
    given
      .split(",")
      .map((item) => item.trim())
      .filter(Boolean);
  switch (values.kind) {
    case "shell": {
      const { folder, user, nice, memory, cpu } = values;
      const env = readPairs(values.env, "=", "work.env", errors);
      const command = commandOf(values.command);
      const interpreter = values.interpreter.trim();
      if (interpreter !== "" && typeof command !== "string")
        errors["work.interpreter"] = "A JSON list runs without a shell: write the command as text, or empty this field.";
      return {
        kind: "shell",
        command,
        ...(interpreter !== "" && { interpreter }),
        ...(Object.keys(env).length > 0 && { env }),
        ...said({ nice, memory, cpu }),
        ...(user.trim() !== "" && { user: user.trim() }),
        ...(folder !== "" && { folder }),
      };
    }
    case "agent": {
      const { cli, model, system, permission_mode, mcp_config, folder } = values;
      const env = readPairs(values.env, "=", "work.env", errors);
      const tools = list(values.allowed_tools);
      const texts = Object.entries({ cli, model, system, permission_mode, mcp_config, folder }).filter(
        ([, value]) => value.trim() !== "",
      );
      return {
        kind: "agent",
        prompt: values.prompt,
        context: values.context,
        ...Object.fromEntries(texts),
        ...(tools.length > 0 && { allowed_tools: tools }),
        ...(Object.keys(env).length > 0 && { env }),
      };
    }
    case "http": {
      const headers = readPairs(values.headers, ":", "work.headers", errors);
      const expect = list(values.expect).map((status) => (/^\d+$/.test(status) ? Number(status) : status));
      const body =
        values.bodyKind === "json"
          ? { json: readJson(values.body, "work.body", errors) }
          : values.bodyKind === "text"
            ? { body: values.body }
            : {};
      return {
        kind: "http",
        method: values.method,
        url: values.url.trim(),
        ...(Object.keys(headers).length > 0 && { headers }),
        ...body,
        ...(expect.length > 0 && { expect }),
      };
    }
    case "function": {
      const args = values.args.trim() === "" ? undefined : readJson(values.args, "work.args", errors);
      const kwargs = values.kwargs.trim() === "" ? undefined : readJson(values.kwargs, "work.kwargs", errors);
      if (args !== undefined && !Array.isArray(args)) errors["work.args"] = 'Enter a JSON list, such as [1, "two"].';
      if (kwargs !== undefined && (kwargs === null || typeof kwargs !== "object" || Array.isArray(kwargs)))
        errors["work.kwargs"] = 'Enter a JSON object, such as {"name": "value"}.';
      return {
        kind: "function",
        task: values.task,
        ...(args !== undefined && { args: args as unknown[] }),
        ...(kwargs !== undefined && { kwargs: kwargs as Record<string, unknown> }),
      };
    }
    case "check_in":
      return { kind: "check_in", ...(values.late_after.trim() !== "" && { late_after: values.late_after.trim() }) };
    default:
      throw new Error(`nobody described ${values.kind} work`);
  }
}
