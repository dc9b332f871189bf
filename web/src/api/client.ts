/** The one way to the server, typed by its OpenAPI document: adds the CSRF token to writes, turns problems into errors
 *  and tells when the login is gone. */

import createClient from "openapi-fetch";
import { ProblemError, readProblem, unreachable } from "@/api/problem";
import type { paths } from "@/api/schema";
import type { Me } from "@/api/types";

export { ProblemError } from "@/api/problem";

/** The token for writes: undefined while it is not known, null where none is needed. */
let csrf: string | null | undefined;
let onLoggedOut: (asked: Request) => void = () => undefined;
let onLoggedIn: () => void = () => undefined;

/** Called with what was asked when the server does not know us any more. */
export function whenLoggedOut(handler: (asked: Request) => void): void {
  onLoggedOut = handler;
}

/** Called when a login was found that was made elsewhere, such as in another tab. */
export function whenLoggedIn(handler: () => void): void {
  onLoggedIn = handler;
}

export function rememberCsrf(me: Me | null): void {
  csrf = me === null ? undefined : me.csrf;
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

const isLogin = (request: Request): boolean => request.url.endsWith("/api/login");
const isWrite = (request: Request): boolean => request.method !== "GET" && !isLogin(request);

async function reach(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw unreachable();
  }
}

/** The token for writes. It ends with its login, and then there may be another, made in another tab of the browser. */
async function writingToken(): Promise<string | null> {
  if (csrf === undefined) {
    const answer = await reach(new Request(new URL("/api/me", window.location.origin)));
    if (answer.ok) {
      rememberCsrf((await answer.json()) as Me);
      onLoggedIn();
    } else if (answer.status !== 401) {
      throw await readProblem(answer);
    }
  }
  return csrf ?? null;
}

/** Sends a request; an answer that is not a success is a ProblemError. */
async function send(request: Request): Promise<Response> {
  if (isWrite(request)) {
    const token = await writingToken();
    if (token !== null) request.headers.set("X-CSRF-Token", token);
  }
  const response = await reach(request);
  if (response.ok) return response;
  const problem = await readProblem(response);
  // 403 may mean that the token is that of an older login: the next write asks for it.
  if (problem.status === 401 || problem.status === 403) rememberCsrf(null);
  if (problem.status === 401 && !isLogin(request)) onLoggedOut(request);
  throw problem;
}

/** `api.GET("/api/lanes")`, `api.POST("/api/lanes/{name}/pause", { params: { path: { name } }, body: {} })`. */
export const api = createClient<paths>({
  baseUrl: window.location.origin,
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
