import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { ProgressBar } from "./ProgressBar";

it("groups the digits of large numbers, with a total or without", () => {
  render(<ProgressBar progress={{ done: 32000, total: 48000, text: "" }} label="Progress" />);
  expect(screen.getByText("32,000 of 48,000 · 66 %")).toBeTruthy();
  render(<ProgressBar progress={{ done: 32000, total: null, text: "rows" }} label="Progress" />);
  expect(screen.getByText("32,000")).toBeTruthy();
});
