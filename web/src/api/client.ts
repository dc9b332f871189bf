/** The one way to the server, typed by its OpenAPI document: adds the origin's key, turns problems into errors and tells
 *  when the login is gone. */

import createClient from "openapi-fetch";
import { live } from "@/api/live";
import { PREFIX } from "@/api/mount";
import { originKey } from "@/api/originKey";
import { ProblemError, readProblem, unreachable } from "@/api/problem";
import type { paths } from "@/api/schema";

export { ProblemError } from "@/api/problem";

let onLoggedOut: (asked: Request) => void = () => undefined;

/** Called with what was asked when the server does not know us any more. */
export function whenLoggedOut(handler: (asked: Request) => void): void {
  onLoggedOut = handler;
}

/** A query without what is not given: `?q=` would ask for nothing. */
export function queryText(query: Record<string, unknown>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    if (Array.isArray(value)) for (const item of value) search.append(name, String(item));
    else search.append(name, String(value));
  }
  return search.toString();
}

/** Who we are is asked first of all: without an answer there is no stream. */
const waits = (request: Request): boolean => request.method === "GET" && !request.url.endsWith("/api/me");

const isLogin = (request: Request): boolean => request.url.endsWith("/api/login");

async function reach(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw unreachable();
  }
}

/** With the key of this origin, which every request but a login needs beside the cookie. */
function withKey(request: Request, key: string | null): Request {
  const keyed = request.clone();
  if (key !== null && !isLogin(request)) keyed.headers.set("X-Origin-Key", key);
  return keyed;
}

/** Sends a request; an answer that is not a success is a ProblemError. */
async function send(request: Request): Promise<Response> {
  if (waits(request)) await live().begun();
  const key = originKey();
  let response = await reach(withKey(request, key));
  // Another tab may have logged in meanwhile: then the cookie is the new one, and so is the key by now.
  if (response.status === 401 && originKey() !== key) response = await reach(withKey(request, originKey()));
  if (response.ok) return response;
  const problem = await readProblem(response);
  if (problem.status === 401 && !isLogin(request)) onLoggedOut(request);
  throw problem;
}

/** `api.GET("/api/lanes")`, `api.POST("/api/lanes/{name}/pause", { params: { path: { name } }, body: {} })`. */
export const api = createClient<paths>({
  baseUrl: window.location.origin + PREFIX,
  credentials: "same-origin",
  headers: { Accept: "application/json" },
  querySerializer: queryText,
  fetch: send,
});

/** What an answer holds; `send` has thrown already if it was not a success. */
export async function dataOf<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}

/** Whether another try can help: no answer, or a server that is busy. */
export function isPassing(error: unknown): boolean {
  return error instanceof ProblemError && (error.status === 0 || error.status === 503 || error.status === 502);
}
