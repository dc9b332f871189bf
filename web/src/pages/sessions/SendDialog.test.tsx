import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { SessionsPage } from "@/pages/sessions/SessionsPage";
import { renderPage } from "@/testing/render";
import { sampleRun, sampleSession } from "@/testing/samples";
import { ME, stubServer } from "@/testing/server";

const ANSWERS = {
  "GET /api/sessions": { items: [sampleSession({ key: "dm:1", cost_usd: 0.5 }), sampleSession({ key: "dm:2" })] },
  "GET /api/tasks": { items: [{ name: "answer", nodes: [], schedules: [], schedule_count: 0 }] },
  "GET /api/projects": { items: [{ name: "blog", folder: "/srv/blog", env: {} }] },
  "POST /api/sessions/dm%3A42/messages": sampleRun({ id: 99 }),
};

const open = async () => {
  renderPage(SessionsPage, { route: "/sessions" });
  await userEvent.click(await screen.findByRole("button", { name: "Send a message" }));
};
const send = () => userEvent.click(screen.getByRole("button", { name: "Send" }));

it("a message to a task is sent as JSON where it is JSON", async () => {
  const asked = stubServer(ANSWERS);
  await open();
  await userEvent.type(await screen.findByLabelText("Session"), "dm:42");
  await userEvent.type(screen.getByLabelText("Task"), "answer");
  await userEvent.type(screen.getByLabelText("Payload"), '{{"text": "hello"}');
  await userEvent.selectOptions(screen.getByLabelText("Mode"), "interrupt");
  await send();
  await screen.findByText("Sent: run 99 carries the message");
  expect(asked.find((one) => one.method === "POST")?.body).toEqual({
    task: "answer",
    payload: { text: "hello" },
    mode: "interrupt",
  });
});

it("an agent gets the text as its prompt, and the dialog says what to type instead", async () => {
  const asked = stubServer(ANSWERS);
  await open();
  await userEvent.type(await screen.findByLabelText("Session"), "dm:42");
  await userEvent.click(screen.getByRole("radio", { name: "Agent" }));
  await userEvent.type(screen.getByLabelText("Model"), "opus");
  await userEvent.selectOptions(screen.getByLabelText("Project"), "blog");
  await userEvent.type(screen.getByLabelText("System prompt"), "Be brief");
  await userEvent.type(screen.getByLabelText("Prompt"), "12");
  expect(
    screen.getByText(/ostinato session send dm:42 "12" --agent --model opus --system 'Be brief' --project blog/),
  ).toBeDefined();
  await send();
  await screen.findByText("Sent: run 99 carries the message");
  expect(asked.find((one) => one.method === "POST")?.body).toEqual({
    agent: { model: "opus", system: "Be brief" },
    payload: "12",
    project: "blog",
  });
});

it("an operator is told that an agent needs an admin", async () => {
  const asked = stubServer({ ...ANSWERS, "GET /api/me": { ...ME, role: "operator" } });
  await open();
  await userEvent.type(await screen.findByLabelText("Session"), "dm:42");
  await userEvent.click(screen.getByRole("radio", { name: "Agent" }));
  await userEvent.type(screen.getByLabelText("Prompt"), "hello");
  expect(screen.getByText("Only an admin may send a message to an agent; you are an operator.")).toBeDefined();
  await send();
  expect(asked.every((one) => one.method === "GET")).toBe(true);
});

it("a message that was typed is not thrown away without a question", async () => {
  stubServer(ANSWERS);
  await open();
  await userEvent.type(await screen.findByLabelText("Payload"), "hello");
  await userEvent.keyboard("{Escape}");
  await screen.findByText("Leave without sending?");
  await userEvent.click(screen.getByRole("button", { name: "Go back" }));
  expect(screen.getByLabelText<HTMLTextAreaElement>("Payload").value).toBe("hello");
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  await userEvent.click(await screen.findByRole("button", { name: "Leave" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});

it("the list says what a session has cost, where it has cost something", async () => {
  stubServer(ANSWERS);
  renderPage(SessionsPage, { route: "/sessions" });
  expect(await screen.findByText("$0.50")).toBeDefined();
  expect(screen.queryByText("$0.00")).toBeNull();
});
