import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Kind, Schedule } from "@/api/types";
import { WorkView } from "@/pages/schedule/WorkView";
import { renderPage } from "@/testing/render";
import { sampleField, samplePolicy, sampleSchedule } from "@/testing/samples";
import { ME, problem, stubServer } from "@/testing/server";
import { AddedFields } from "./AddedFields";
import { ScheduleFormPage } from "./ScheduleFormPage";
import { addedValues } from "./addedValues";

const sql: Kind = {
  name: "sql",
  label: "SQL",
  help: "Run a statement.",
  added: true,
  needs_admin: true,
  timeout: "1m",
  fields: [
    sampleField("statement", "text", { label: "Statement", required: true }),
    sampleField("most", "number", { label: "Most rows", default: 100 }),
    sampleField("mode", "choice", { label: "Mode", default: "read", choices: ["read", "write"] }),
    sampleField("dry", "switch", { label: "Dry", default: false }),
    sampleField("to", "texts", { label: "To", default: [] }),
    sampleField("labels", "pairs", { label: "Labels", default: {} }),
    sampleField("more", "json", { label: "More" }),
    sampleField("token", "text", { label: "Token", nullable: true, secret: true }),
  ],
};
const lists = {
  "GET /api/projects": { items: [] },
  "GET /api/tasks": { items: [] },
  "GET /api/lanes": { items: [] },
  "GET /api/kinds": { items: [{ ...sql, name: "shell", added: false, fields: [] }, sql] },
  "GET /api/timings/preview": { text: "every 5m", zone: "UTC", sentence: "", next: [], remarks: [] },
};
const stored = {
  ...{ kind: "sql", line: "select 1", statement: "select 1", most: 5, mode: "write", dry: true, to: ["a", "b"] },
  ...{ labels: { A: "1" }, more: ["x"], token: "env:T" },
};
const schedule = sampleSchedule({
  name: "backup",
  version: 4,
  work: stored as unknown as Schedule["work"],
  policy: samplePolicy({ timeout: "1m" }),
});
const fill = (label: string, value: string) =>
  fireEvent.change(screen.getByLabelText(label), { target: { value } });

describe("work of a kind that a package adds", () => {
  it("has a tab with the fields that the server describes, and is sent as they say", async () => {
    const asked = stubServer({ ...lists, "POST /api/schedules": { ...schedule, name: "tidy" } });
    const { router } = renderPage(ScheduleFormPage, { route: "/schedules/new" });
    const user = userEvent.setup();
    fireEvent.change(await screen.findByLabelText("Name"), { target: { value: "tidy" } });
    await user.type(screen.getByLabelText("Timing"), "every 5m");
    expect(screen.getAllByRole("tab", { name: "Shell" })).toHaveLength(1);
    await user.click(screen.getByRole("tab", { name: "SQL" }));
    expect(screen.getByText("Run a statement.")).toBeTruthy();
    expect(screen.getByLabelText<HTMLInputElement>("Most rows").value).toBe("100");
    fill("Statement", "select 1");
    fill("Most rows", "5");
    fill("Mode", "write");
    fill("Dry", "true");
    fill("To", "a\nb\n");
    fill("Labels", "A=1");
    fill("More", '["x"]');
    fill("Token", "env:T");
    await user.click(screen.getByText("Create schedule"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/schedules/tidy"));
    const { line: _, ...work } = stored;
    const sent = asked.find((each) => each.method === "POST")?.body;
    expect(sent).toEqual({ name: "tidy", timing: "every 5m", work });
  });

  it("is edited, and what the server says of a field stands at it", async () => {
    const wrong = problem(422, "no", { errors: [{ field: "work.most", message: "most cannot be -1" }] });
    const asked = stubServer({ ...lists, "GET /api/schedules/backup": schedule, "PATCH /api/schedules/backup": wrong });
    renderPage(ScheduleFormPage, { route: "/schedules/$name/edit", at: "/schedules/backup/edit" });
    expect((await screen.findByLabelText<HTMLTextAreaElement>("Statement")).value).toBe("select 1");
    expect(screen.getByLabelText<HTMLTextAreaElement>("To").value).toBe("a\nb");
    const timeout = screen.getByLabelText<HTMLInputElement>("Timeout");
    expect([timeout.value, timeout.placeholder]).toEqual(["", "1m"]);
    fill("Most rows", "-1");
    fill("Token", "");
    await userEvent.setup().click(screen.getByText("Save"));
    expect(await screen.findByText("most cannot be -1")).toBeTruthy();
    const { line: _, ...work } = stored;
    const sent = asked.find((each) => each.method === "PATCH")?.body;
    expect(sent).toEqual({ work: { ...work, most: -1, token: null } });
  });

  it("tells what is no JSON, and who may save it", async () => {
    stubServer({ ...lists, "GET /api/schedules/backup": schedule });
    renderPage(ScheduleFormPage, { route: "/schedules/$name/edit", at: "/schedules/backup/edit" });
    await screen.findByLabelText("Statement");
    fill("More", "[");
    await userEvent.setup().click(screen.getByText("Save"));
    expect(await screen.findByText(/This is not JSON/)).toBeTruthy();
  });

  it("is not for an operator, if its package says so", async () => {
    stubServer({ ...lists, "GET /api/me": { ...ME, role: "operator" }, "GET /api/schedules/backup": schedule });
    renderPage(ScheduleFormPage, { route: "/schedules/$name/edit", at: "/schedules/backup/edit" });
    await screen.findByLabelText("Statement");
    fill("Most rows", "7");
    expect(screen.getByText("Only an admin may create or change sql work.")).toBeTruthy();
    expect(screen.getByText("Save").closest("button")?.getAttribute("aria-disabled")).toBe("true");
  });

  it("shows no word of a choice that nobody made", () => {
    const way = sampleField("way", "choice", { label: "Way", required: true, choices: ["in", "out"] });
    const open = sampleField("open", "switch", { label: "Open", nullable: true });
    const kind = { ...sql, fields: [way, open, sampleField("dry", "switch", { label: "Dry", required: true })] };
    const { texts } = addedValues(kind);
    render(<AddedFields kind={kind} texts={texts} onChange={() => undefined} errors={{}} />);
    const words = (label: string) =>
      [...screen.getByLabelText<HTMLSelectElement>(label).options].map((option) => option.textContent);
    expect(words("Way")).toEqual(["", "in", "out"]);
    expect(screen.getByLabelText<HTMLSelectElement>("Way").value).toBe("");
    expect(words("Open")).toEqual(["", "no", "yes"]);
    expect(words("Dry")).toEqual(["no", "yes"]);
  });

  it("keeps what nobody touched", async () => {
    const work = { ...stored, to: [], labels: { "a=b": "c" }, more: null, token: "" };
    const asked = stubServer({
      ...lists,
      "GET /api/schedules/backup": { ...schedule, work },
      "PATCH /api/schedules/backup": schedule,
    });
    renderPage(ScheduleFormPage, { route: "/schedules/$name/edit", at: "/schedules/backup/edit" });
    await screen.findByLabelText("Statement");
    fill("Most rows", "7");
    await userEvent.setup().click(screen.getByText("Save"));
    const { line: _, ...rest } = work;
    await waitFor(() =>
      expect(asked.find((each) => each.method === "PATCH")?.body).toEqual({ work: { ...rest, most: 7 } }),
    );
  });

  it("is shown by its line and its fields", async () => {
    stubServer(lists);
    const off = { ...stored, dry: false } as unknown as Schedule["work"];
    renderPage(() => <WorkView work={off} />, { route: "/" });
    expect(await screen.findByText("select 1")).toBeTruthy();
    expect(screen.getByText("sql")).toBeTruthy();
    expect(screen.getByText("A: 1")).toBeTruthy();
    expect(screen.getByText("a, b")).toBeTruthy();
    expect(screen.getByText("false")).toBeTruthy();
    expect(screen.queryByText("statement")).toBeNull();
  });
});
