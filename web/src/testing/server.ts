/** A stand-in for the server: answers by "METHOD /path" and remembers what it was asked. */

import { vi } from "vitest";
import type { Me } from "@/api/types";

export interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: Headers;
  body: unknown;
}

export type Answer = (asked: Asked) => unknown;

export const ME: Me = { who: "ada", role: "admin", version: "0.1.0", zone: "Europe/Berlin", db: "sqlite:////srv/jobs.db" };

/** What a login answers: the key is told this once. */
export const MADE_LOGIN = { ...ME, origin_key: "key" };

/** An answer that is a problem. */
export function problem(status: number, detail: string, more: Record<string, unknown> = {}): Response {
  const body = { type: "/problems/test", title: "Problem", status, detail, ...more };
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/problem+json" } });
}

/** `answers` by "GET /api/lanes": a value for JSON, a function, or a Response. What is not listed is a 404. */
export function stubServer(answers: Record<string, unknown>): Asked[] {
  const asked: Asked[] = [];
  const all: Record<string, unknown> = { "GET /api/me": ME, ...answers };
  vi.stubGlobal("fetch", async (request: Request) => {
    const url = new URL(request.url);
    const text = await request.text();
    const one: Asked = {
      method: request.method,
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: text === "" ? undefined : JSON.parse(text),
    };
    asked.push(one);
    const name = `${request.method} ${url.pathname}`;
    const found = all[name];
    const answer = typeof found === "function" ? await (found as Answer)(one) : found;
    if (answer instanceof Response) return answer.clone();
    if (answer === undefined) return problem(404, `the test has no answer for ${name}`);
    if (answer === null) return new Response(null, { status: 204 });
    return new Response(JSON.stringify(answer), { headers: { "Content-Type": "application/json" } });
  });
  return asked;
}
