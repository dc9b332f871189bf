import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { sampleShell } from "@/testing/samples";
import { renderPage } from "@/testing/render";
import { WorkView } from "./WorkView";

describe("the work of a command", () => {
  it.each([
    [sampleShell({ command: "print(1)", interpreter: "python3" }), "python3"],
    [sampleShell({ command: "[[ a == a ]]" }), "bash, or sh without it"],
  ])("says what runs its text", async (work, shown) => {
    renderPage(() => <WorkView work={work} />, { route: "/" });
    expect(await screen.findByText("Interpreter")).toBeTruthy();
    expect(screen.getByText(shown)).toBeTruthy();
  });

  it("says of a list that nothing does", async () => {
    renderPage(() => <WorkView work={sampleShell({ command: ["ls", "-l"] })} />, { route: "/" });
    expect(await screen.findByText("Without a shell")).toBeTruthy();
    expect(screen.queryByText("Interpreter")).toBeNull();
  });
});
