// Cookies do not know ports: whoever serves another port of this host gets ours. It opens nothing there, nor for its page.
import { createServer } from "node:http";
import { BASE, expect, scenario } from "./scenario.mjs";

await scenario(async ({ page, context, logIn, cli, forgive }) => {
  await logIn();
  const visits = [];
  const server = createServer((request, response) => {
    visits.push(request.headers.cookie ?? "");
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><h1>Another server</h1>");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const there = `http://127.0.0.1:${server.address().port}/`;
  try {
    const other = await context.newPage();
    await other.goto(there);
    const cookie = visits[0];
    expect(/ostinato-\d+=\S{20}/.test(cookie), "the other server got the cookie, as browsers do it");

    // The server itself, which no browser holds back.
    const asked = [["GET", "/api/me"], ["GET", "/api/runs"], ["GET", "/api/logins"], ["POST", "/api/runs"]];
    for (const [method, path] of asked) {
      const body = method === "POST" ? JSON.stringify({ work: { kind: "shell", command: "id" } }) : undefined;
      const headers = { Cookie: cookie, "Content-Type": "application/json" };
      const answer = await fetch(BASE + path, { method, headers, body });
      expect(answer.status === 401, `${method} ${path} with the cookie alone answers 401, not ${answer.status}`);
      const said = await answer.text();
      expect(!said.includes('"origin_key":') && !/[A-Za-z0-9_-]{40}/.test(said), `and tells no key: ${said}`);
    }

    // Its page in the same browser: it reads neither our answers nor our storage, and gets no socket.
    const found = await other.evaluate(async (base) => {
      const read = await fetch(`${base}/api/me`, { credentials: "include" }).then(() => "read", () => "refused");
      const socket = await new Promise((resolve) => {
        const live = new WebSocket(`${base.replace("http", "ws")}/api/live`);
        live.onopen = () => resolve("open");
        live.onerror = () => resolve("refused");
      });
      return { read, socket, stored: { ...localStorage } };
    }, BASE);
    expect(found.read === "refused" && found.socket === "refused", `nothing is read from there: ${JSON.stringify(found)}`);
    expect(Object.keys(found.stored).length === 0, "the key is not kept there");
    expect(JSON.parse(await cli("run", "ls", "--json")).length === 0, "nothing was started");

    // Ours goes on.
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  } finally {
    server.close();
    server.closeAllConnections();
  }
  forgive(/CORS|WebSocket/);
});
