import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Session } from "@/api/types";
import { readPayload } from "@/pages/sessions/SendDialog";
import { sendCommand } from "@/pages/sessions/sendCommand";
import { SessionPage } from "@/pages/sessions/SessionPage";
import { renderPage } from "@/testing/render";
import { sampleRun } from "@/testing/samples";
import { stubServer } from "@/testing/server";

const session = (changes: Partial<Session> = {}): Session => ({
  key: "dm:42/a",
  running: 1,
  queued: 2,
  oldest_at: null,
  max_concurrent: 1,
  throttled: false,
  stopped_at: null,
  sent_at: "2026-11-16T10:00:00Z",
  ...changes,
});

const answers = (held: Session) => ({
  "GET /api/sessions/dm%3A42%2Fa": held,
  "GET /api/sessions/dm%3A42%2Fa/messages": { items: [], next: null },
  "GET /api/tasks": { items: [{ name: "answer", nodes: [], schedules: 0 }] },
});

const open = () => renderPage(SessionPage, { route: "/sessions/$key", at: "/sessions/dm%3A42%2Fa" });

it("a message is sent as JSON where it is JSON", async () => {
  const asked = stubServer({ ...answers(session()), "POST /api/sessions/dm%3A42%2Fa/messages": sampleRun({ id: 99 }) });
  open();
  await userEvent.click(await screen.findByRole("button", { name: "Send" }));
  await userEvent.type(await screen.findByLabelText("Task"), "answer");
  await userEvent.type(screen.getByLabelText("Payload"), '{{"text": "hello"}');
  await userEvent.selectOptions(screen.getByLabelText("Mode"), "interrupt");
  await userEvent.click(screen.getAllByRole("button", { name: "Send" }).at(-1) as HTMLElement);
  await screen.findByText("Sent: run 99 carries the message");
  expect(asked.find((one) => one.method === "POST")?.body).toEqual({
    task: "answer",
    payload: { text: "hello" },
    mode: "interrupt",
  });
});

it("stop all says what will go, and asks first", async () => {
  const asked = stubServer({
    ...answers(session()),
    "POST /api/sessions/dm%3A42%2Fa/stop_all": { cancelled: [1], dropped: [2, 3] },
  });
  open();
  await userEvent.click(await screen.findByRole("button", { name: "Stop all" }));
  await screen.findByText(/1 run will be cancelled and 2 queued runs dropped/);
  await userEvent.click(screen.getAllByRole("button", { name: "Stop all" }).at(-1) as HTMLElement);
  await waitFor(() => expect(asked.some((one) => one.path.endsWith("/stop_all"))).toBe(true));
});

it("an idle session cannot be stopped", async () => {
  stubServer(answers(session({ running: 0, queued: 0 })));
  open();
  const button = await screen.findByRole("button", { name: "Stop" });
  expect(button.getAttribute("aria-disabled")).toBe("true");
});

it.each([
  ["hello", "hello"],
  ["12", 12],
  ['["a"]', ["a"]],
  ["{broken", "{broken"],
])("%s is the payload %j", (text, payload) => {
  expect(readPayload(text)).toEqual(payload);
});

it("a message that was typed is not thrown away without a question", async () => {
  stubServer(answers(session()));
  open();
  await userEvent.click(await screen.findByRole("button", { name: "Send" }));
  await userEvent.type(await screen.findByLabelText("Payload"), "hello");
  await userEvent.keyboard("{Escape}");
  await screen.findByText("Leave without sending?");
  await userEvent.click(screen.getByRole("button", { name: "Go back" }));
  expect(screen.getByLabelText<HTMLTextAreaElement>("Payload").value).toBe("hello");
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  await userEvent.click(await screen.findByRole("button", { name: "Leave" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});

it("an empty session says what to type", async () => {
  stubServer(answers(session()));
  open();
  expect(await screen.findByText('ostinato session send dm:42/a "hello" --task TASK')).toBeDefined();
  expect(sendCommand("it's me")).toBe(`ostinato session send 'it'\\''s me' "hello" --task TASK`);
});
