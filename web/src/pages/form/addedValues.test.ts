import { describe, expect, it } from "vitest";
import type { AddedWork, Kind, KindField } from "@/api/types";
import { sampleField } from "@/testing/samples";
import { addedRequest, addedValues } from "./addedValues";
import type { LocalErrors } from "./workTexts";

const kindOf = (...fields: KindField[]): Kind => ({
  name: "xx",
  label: "XX",
  help: "",
  added: true,
  needs_admin: true,
  timeout: null,
  fields,
});

/** What is sent for a work that has this value, after these texts were written into its field. */
function sent(one: KindField, value: unknown, written?: string): unknown {
  const errors: LocalErrors = {};
  const kind = kindOf(sampleField("other", "text", { default: "" }), one);
  const values = addedValues(kind, { kind: "xx", line: "", other: "a", [one.name]: value } as AddedWork);
  const texts = { ...values.texts, other: "b", ...(written !== undefined && { [one.name]: written }) };
  const body = addedRequest({ added: kind, texts, stored: values.stored }, errors) as unknown as Record<string, unknown>;
  expect(body["other"]).toBe("b");
  return Object.keys(errors).length > 0 ? errors : body[one.name];
}
/** The text of a value in the form. */
const shown = (one: KindField, value: unknown): string =>
  addedValues(kindOf(one), { kind: "xx", line: "", [one.name]: value } as AddedWork).texts[one.name] ?? "";

const numbers = sampleField("x", "texts", { default: ["2xx"], has_numbers: true });
const STORED: [string, KindField, unknown[]][] = [
  ["text", sampleField("x", "text", { default: "d" }), ["", "  ", " a ", "a\nb", "***"]],
  ["text or null", sampleField("x", "text", { default: "d", nullable: true }), [null, "", "a"]],
  ["number", sampleField("x", "number", { default: 7 }), [0, -1, 1.5, 1e21, 1e-9]],
  ["switch", sampleField("x", "switch", { default: true }), [true, false]],
  ["choice", sampleField("x", "choice", { default: "a", choices: ["a", "b"] }), ["a", "b"]],
  ["texts", sampleField("x", "texts", { default: ["all"] }), [[], ["a", "b"], ["a\nb", "", " c ", '"d"', "5"]]],
  ["numbers", numbers, [[], [200, "200", "2xx", "a\nb"]]],
  ["pairs", sampleField("x", "pairs", { default: { a: "b" } }), [{}, { A: "", B: " b\n", "a=b": "c" }]],
  ["command", sampleField("x", "command", { default: "true" }), ["", "rm a", ["rm", "-rf", "a b"], "[ -f x ]"]],
  ["json", sampleField("x", "json", { default: [1] }), [null, [], {}, "a", 0, { a: [null] }]],
];

describe("work of a kind that a package adds, in texts", () => {
  it.each(STORED)("sends a %s that nobody touched as it is stored", (_, one, values) => {
    for (const value of values) expect(sent(one, value)).toEqual(value);
  });

  it.each(STORED.filter(([name]) => !["pairs", "text or null", "json"].includes(name)))(
    "reads a %s back from its text",
    (_, one, values) => {
      // What is written over another value is what its text says.
      for (const value of values) expect(sent(one, "another", shown(one, value))).toEqual(value);
    },
  );

  it("sends what is emptied as empty, as null where it may be, or as its default", () => {
    expect(sent(sampleField("x", "text", { default: "d" }), "a", "")).toBe("");
    expect(sent(sampleField("x", "text", { default: "d", nullable: true }), "a", "")).toBeNull();
    expect(sent(sampleField("x", "texts", { default: ["d"] }), ["a"], "")).toEqual([]);
    expect(sent(sampleField("x", "pairs", { default: { d: "1" } }), { a: "1" }, "")).toEqual({});
    expect(sent(sampleField("x", "number", { default: 7 }), 5, "")).toBeUndefined();
    expect(sent(sampleField("x", "json", { default: [1] }), [2], " ")).toBeUndefined();
  });

  it("reads numbers as the command line does, and leaves to the server what it cannot hold", () => {
    const one = sampleField("x", "number");
    const written = ["5", " -5 ", "+5", ".5", "1e3", "9007199254740993", "five", "Infinity"];
    const read = [5, -5, 5, 0.5, 1000, "9007199254740993", "five", "Infinity"];
    expect(written.map((text) => sent(one, 0, text))).toEqual(read);
    expect(sent(numbers, [], '204\n2xx\n"204"')).toEqual([204, "2xx", "204"]);
  });

  it("says of a new work only what was written", () => {
    const kind = kindOf(
      sampleField("must", "text", { required: true }),
      sampleField("list", "texts", { default: ["all"] }),
      sampleField("note", "text", { default: "x" }),
      sampleField("way", "choice", { required: true, choices: ["a", "b"] }),
    );
    const values = { ...addedValues(kind), added: kind };
    expect(addedRequest(values, {})).toEqual({ kind: "xx", must: "", way: "" });
    const texts = { ...values.texts, must: "m", list: "", note: "", way: "b" };
    expect(addedRequest({ ...values, texts }, {})).toEqual({ kind: "xx", must: "m", list: [], note: "", way: "b" });
  });
});
