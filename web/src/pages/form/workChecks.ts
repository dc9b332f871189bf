// What can be seen to be wrong with work without asking the server, beside what its texts cannot be read as.

import { durationProblem } from "./policyChecks";
import type { LocalErrors } from "./workTexts";
import type { WorkValues } from "./workValues";

/** What the work is nothing without. */
const NEEDED: Partial<Record<string, [keyof WorkValues, string]>> = {
  shell: ["command", "Enter a command, such as echo hello."],
  agent: ["prompt", "Enter a prompt: what the agent is to do."],
  http: ["url", "Enter an address, such as https://example.com/hook."],
  function: ["task", "Enter the name of a task, such as send_report."],
};

const isWithin = (text: string, least: number, most: number): boolean =>
  /^-?\d+$/.test(text) && Number(text) >= least && Number(text) <= most;

/** The errors of the work of our own kinds, by the names of the form. */
export function workProblems(values: WorkValues): LocalErrors {
  const found: LocalErrors = {};
  const [needed, words] = (values.added === null && NEEDED[values.kind]) || [];
  if (needed !== undefined && words !== undefined && String(values[needed]).trim() === "") found[`work.${needed}`] = words;
  const given = (name: "nice" | "memory" | "cpu" | "late_after"): string => values[name].trim();
  if (values.kind === "shell") {
    if (given("nice") !== "" && !isWithin(given("nice"), -20, 19))
      found["work.nice"] = "Nice is a whole number from -20 to 19, such as 10.";
    if (given("memory") !== "" && !/^\d+(\.\d+)?\s*([kmgt]?b?)$/i.test(given("memory")))
      found["work.memory"] = "Memory is a size, such as 512MB or 2GB.";
    if (given("cpu") !== "" && !/^\d+(\.\d+)?$/.test(given("cpu")) && durationProblem(given("cpu")) !== null)
      found["work.cpu"] = "Processor time is a number of seconds, such as 60.";
  }
  if (values.kind === "check_in" && given("late_after") !== "") {
    const problem = durationProblem(given("late_after"));
    if (problem !== null) found["work.late_after"] = `Late after ${problem}`;
  }
  return found;
}
