import { afterEach, expect, it } from "vitest";
import { mendLanguage } from "@/time/language";

const own = Object.getOwnPropertyDescriptor(navigator, "language");
const say = (language: string): void => {
  Object.defineProperty(navigator, "language", { configurable: true, value: language });
};

afterEach(() => {
  if (own === undefined) Reflect.deleteProperty(navigator, "language");
  else Object.defineProperty(navigator, "language", own);
  Reflect.deleteProperty(navigator, "languages");
});

it("a language that is no tag breaks Intl, and is mended before the chart's library hands it over", async () => {
  say("en-US@posix");
  expect(() => new Intl.NumberFormat(navigator.language)).toThrow(RangeError);
  mendLanguage();
  expect([navigator.language, navigator.languages]).toEqual(["en-US", ["en-US"]]);
  expect((await import("uplot")).default).toBeTypeOf("function");
});

it.each(["", "en-US@posix", "C.UTF-8"])("%j is no language", (language) => {
  say(language);
  mendLanguage();
  expect(navigator.language).toBe("en-US");
});

it("a language that is one stays", () => {
  say("de-CH");
  mendLanguage();
  expect(navigator.language).toBe("de-CH");
});
