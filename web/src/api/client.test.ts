import { beforeEach, expect, it, vi } from "vitest";
import { api, dataOf, ProblemError, queryText, whenLoggedOut } from "@/api/client";
import { keepOriginKey } from "@/api/originKey";
import { type Asked, MADE_LOGIN, problem, stubServer } from "@/testing/server";

beforeEach(() => {
  keepOriginKey("key");
  whenLoggedOut(() => undefined);
});

async function failing(promise: Promise<unknown>): Promise<ProblemError> {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ProblemError)) throw new Error("it did not fail with a problem");
  return error;
}

it("every request carries the key of this origin, but for a login", async () => {
  const asked = stubServer({ "GET /api/lanes": {}, "POST /api/lanes/main/pause": {}, "POST /api/login": MADE_LOGIN });
  await api.GET("/api/lanes");
  await api.POST("/api/lanes/{name}/pause", { params: { path: { name: "main" } }, body: { note: "tonight" } });
  await api.POST("/api/login", { body: { token: "ost_1" } });
  expect(asked.map((one) => one.headers.get("X-Origin-Key"))).toEqual(["key", "key", null]);
  expect(asked[1]?.body).toEqual({ note: "tonight" });
});

it("a problem becomes an error with its fields", async () => {
  const errors = [
    { field: "policy.retry.max", message: "retry.max cannot be -1", hint: "give 0 or more", position: null },
  ];
  stubServer({ "POST /api/schedules": problem(422, "retry.max cannot be -1", { errors }) });
  const error = await failing(
    api.POST("/api/schedules", { body: { name: "a", timing: "b", work: { kind: "shell", command: "c" } } }),
  );
  expect(error.status).toBe(422);
  expect(error.message).toBe("retry.max cannot be -1");
  expect(error.fields["policy.retry.max"]?.hint).toBe("give 0 or more");
});

it("an answer that is no problem+json is still an error with its status", async () => {
  stubServer({ "GET /api/lanes": new Response("<html>", { status: 502, statusText: "Bad Gateway" }) });
  const error = await failing(api.GET("/api/lanes"));
  expect([error.status, error.message]).toEqual([502, "Bad Gateway"]);
});

it("no answer at all is a problem of status 0 that says what to look at", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("failed to fetch")));
  const error = await failing(api.GET("/api/lanes"));
  expect(error.status).toBe(0);
  expect(error.problem.errors?.[0]?.hint).toContain("ostinato up");
});

it("a 401 tells that the login is gone, but not the one of a wrong login", async () => {
  const gone = vi.fn();
  whenLoggedOut(gone);
  stubServer({ "GET /api/lanes": problem(401, "log in"), "POST /api/login": problem(401, "wrong token") });
  await failing(api.POST("/api/login", { body: { token: "x" } }));
  expect(gone).not.toHaveBeenCalled();
  await failing(api.GET("/api/lanes"));
  expect(gone).toHaveBeenCalledOnce();
});

it("a login that another tab made meanwhile is found, and what was asked is asked once more", async () => {
  const gone = vi.fn();
  whenLoggedOut(gone);
  const asked = stubServer({
    "POST /api/lanes/main/pause": (one: Asked) => {
      if (one.headers.get("X-Origin-Key") === "new") return {};
      keepOriginKey("new");
      return problem(401, "log in");
    },
  });
  await api.POST("/api/lanes/{name}/pause", { params: { path: { name: "main" } }, body: { note: "tonight" } });
  expect(asked.map((one) => [one.headers.get("X-Origin-Key"), one.body])).toEqual([
    ["key", { note: "tonight" }],
    ["new", { note: "tonight" }],
  ]);
  expect(gone).not.toHaveBeenCalled();
});

it("a key that is refused is not tried again", async () => {
  const asked = stubServer({ "GET /api/lanes": problem(401, "log in") });
  await failing(api.GET("/api/lanes"));
  expect(asked).toHaveLength(1);
});

it("a name in a path may hold anything", async () => {
  const asked = stubServer({});
  await failing(api.GET("/api/lanes/{name}", { params: { path: { name: "a/b?c#d é" } } }));
  expect(asked[0]?.path).toBe("/api/lanes/a%2Fb%3Fc%23d%20%C3%A9");
});

it("a 204 has no content, and empty query values are left out", async () => {
  stubServer({ "DELETE /api/tokens/1": null });
  expect(await dataOf(api.DELETE("/api/tokens/{id}", { params: { path: { id: 1 } } }))).toBeUndefined();
  expect(queryText({ q: "a b", state: ["queued", "running"], cursor: null, none: undefined, empty: "" })).toBe(
    "q=a+b&state=queued&state=running",
  );
});
