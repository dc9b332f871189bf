import { afterEach, beforeEach, expect, it, vi } from "vitest";

/** The page as the server says where it is: `<meta name="ostinato-…" content="…">`. */
function served(said: Record<string, string>): void {
  for (const [name, content] of Object.entries(said)) {
    const meta = document.createElement("meta");
    meta.name = `ostinato-${name}`;
    meta.content = content;
    document.head.append(meta);
  }
}

beforeEach(() => vi.resetModules());
afterEach(() => {
  for (const meta of document.querySelectorAll("meta")) meta.remove();
});

it.each([
  ["/", "/api/me"],
  ["/jobs/", "/jobs/api/me"],
  // The development server leaves the file as it is.
  ["./", "/api/me"],
])("mounted at %s, the server is asked for %s", async (base, path) => {
  served({ base });
  const { mounted } = await import("@/api/mount");
  expect(mounted("/api/me")).toBe(path);
});

it("two mounts of one origin keep their keys apart", async () => {
  served({ base: "/jobs/", login: "here" });
  const { keepOriginKey, originKey } = await import("@/api/originKey");
  keepOriginKey("secret");
  expect(originKey()).toBe("secret");
  expect(localStorage.getItem("ostinato.origin_key")).toBe(null);
  expect(localStorage.getItem("ostinato.origin_key/jobs")).toBe("secret");
  keepOriginKey(null);
});

it("with the login of the app around, the header is sent though nobody logged in here", async () => {
  served({ login: "host" });
  const { originKey } = await import("@/api/originKey");
  expect(originKey()).toBe("host");
});
