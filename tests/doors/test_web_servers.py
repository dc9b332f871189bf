"""The examples under real servers: what they serve, which of their processes is a node, and that none outlives its
server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from ostinato import Ostinato, Shell
from ostinato.config import Settings
from tests.doors.test_documentation import ROOT, blocks_of
from tests.doors.web_servers import EXAMPLES, WebServer, until

pytestmark = pytest.mark.timeout(600)

KEY = {"X-Origin-Key": "host"}
SERVED = {"fastapi_app": "api", "starlette_app": "site", "litestar_app": "site"}
"""The ASGI examples, each with the name of its app."""
EVERY_EXAMPLE = [*SERVED, "flask_app", "plain_script"]


def in_folder(folder: Path, name: str) -> Path:
    """An example as a user has it, in a folder of its own."""
    shutil.copy(EXAMPLES / f"{name}.py", folder)
    return folder


def uvicorn(folder: Path, name: str, *flags: str) -> WebServer:
    database = f"{name.removesuffix('_app')}.db"
    app = f"{name}:{SERVED[name]}"
    words = ("uvicorn", app, "--port", "{port}", *flags)
    return WebServer(in_folder(folder, name), *words, database=database, ready="/jobs/healthz")


def gunicorn(folder: Path, *flags: str, module: str = "flask_app") -> WebServer:
    words = ("gunicorn", f"{module}:site", "--bind", "127.0.0.1:{port}", "--no-control-socket", *flags)
    return WebServer(folder, *words, database="flask.db")


def log_in(client: httpx.Client) -> None:
    there = client.get("/jobs/", follow_redirects=False).headers["location"]
    assert there == "/login?next=%2Fjobs%2F"
    assert client.post(there, data={"password": "wrong"}).status_code == 403
    page = client.post(there, data={"password": "open sesame"}, follow_redirects=True)
    assert (page.status_code, page.url.path) == (200, "/jobs/")


@pytest.mark.parametrize("name", EVERY_EXAMPLE)
def test_the_guide_shows_each_example_as_it_is(name: str) -> None:
    shown = [block.code for block in blocks_of(ROOT / "docs/guides/web-apps.md") if block.module == name]
    assert shown == [(EXAMPLES / f"{name}.py").read_text(encoding="utf-8")]


def test_every_example_is_tried_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(EVERY_EXAMPLE)


@pytest.mark.parametrize("name", SERVED)
def test_an_asgi_example_runs_its_tasks_and_serves_the_page_under_its_prefix(name: str, tmp_path: Path) -> None:
    with uvicorn(tmp_path, name) as server, httpx.Client(base_url=server.url) as client:
        server.until_nodes(1)
        run = client.post("/signup", params={"to": "ada"}).json()["run"]
        page = client.get("/jobs/", follow_redirects=True)
        if name == "fastapi_app":
            log_in(client)
            until("it ran", lambda: client.get(f"/runs/{run}").json()["state"] == "succeeded", server.log)
            assert client.get(f"/jobs/api/runs/{run}", headers=KEY).json()["result"] == "sent to ada"
            assert client.get("/runs/999").status_code == 404
        else:
            assert '<meta name="ostinato-base" content="/jobs/" />' in page.text
            server.jobs.runs.wait(run, timeout=60)
        server.process.send_signal(signal.SIGTERM)
        server.ends()


def test_the_hosts_login_opens_the_stream_and_is_in_the_audit_log(tmp_path: Path) -> None:
    with uvicorn(tmp_path, "fastapi_app") as server, httpx.Client(base_url=server.url) as client:
        live = server.url.replace("http", "ws") + "/jobs/api/live"
        with connect(live) as stranger:
            stranger.send(json.dumps({"type": "login", "origin_key": "host"}))
            assert json.loads(stranger.recv())["problem"]["status"] == 401
        log_in(client)
        cookie = {"Cookie": f"session={client.cookies['session']}"}
        with connect(live, additional_headers=cookie) as socket:
            socket.send(json.dumps({"type": "login", "origin_key": "host"}))
            socket.send(json.dumps({"type": "subscribe", "topic": "overview"}))
            assert json.loads(socket.recv())["type"] == "subscribed"
            body = {"work": {"kind": "function", "task": "send_mail", "args": ["grace"]}}
            made = client.post("/jobs/api/runs", json=body, headers=KEY)
            assert made.status_code == 201
            while json.loads(socket.recv())["type"] != "event":
                pass
            # A server that stops closes the stream, and does not wait for it.
            server.process.send_signal(signal.SIGTERM)
            server.ends()
    # Another process knows who is logged in, too.
    with uvicorn(tmp_path, "fastapi_app") as server, httpx.Client(base_url=server.url, headers=cookie) as client:
        entries = client.get("/jobs/api/audit", headers=KEY).json()["items"]
        assert [(entry["who"], entry["door"]) for entry in entries if entry["verb"] == "run.enqueue"] == [
            ("ada", "page")
        ]


def test_two_workers_of_uvicorn_are_two_nodes_and_leave_together(tmp_path: Path) -> None:
    with uvicorn(tmp_path, "starlette_app", "--workers", "2", "--timeout-worker-healthcheck", "60") as server:
        server.until_nodes(2)
        server.interrupt()
        server.ends()


def test_a_reload_leaves_neither_a_process_nor_a_node_of_the_one_before(tmp_path: Path) -> None:
    with uvicorn(tmp_path, "starlette_app", "--reload") as server:
        (first,) = server.until_nodes(1)
        before = server.family()
        source = tmp_path / "starlette_app.py"
        source.write_text(source.read_text().replace('"open"', '"reopened"'))

        def is_renewed() -> bool:
            nodes = server.nodes()
            return len(nodes) == 1 and nodes[0].id != first.id

        until("the next process is the only node", is_renewed, server.log)
        until("it serves", server.answers, server.log)
        answer = httpx.post(f"{server.url}/signup", params={"to": "ada"})
        assert answer.json()["shop"] == "reopened"
        assert first.pid not in server.family()
        assert before
        server.interrupt()
        server.ends()


def test_a_second_interrupt_forces_the_drain_and_leaves_nothing(tmp_path: Path) -> None:
    with uvicorn(tmp_path, "starlette_app") as server:
        server.until_nodes(1)
        run = server.jobs.enqueue(Shell(f"touch {tmp_path}/begun; exec sleep 600"), retry=0)
        until("the work has begun", (tmp_path / "begun").exists, server.log)
        assert server.family()
        server.process.send_signal(signal.SIGINT)
        until("it drains", lambda: server.nodes()[0].state == "draining", server.log)
        assert f"waiting for run {run.id} of 'shell' to end (Ctrl-C cuts off what is under way)" in server.log()
        server.process.send_signal(signal.SIGINT)
        server.ends()
        assert server.jobs.runs.get(run.id).cause == "cut_off"


def test_the_plain_script_runs_its_tasks_and_sigterm_drains_it(tmp_path: Path) -> None:
    words = [sys.executable, str(in_folder(tmp_path, "plain_script") / "plain_script.py")]
    jobs = Ostinato(settings=Settings(db=f"sqlite:///{tmp_path}/script.db"))
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        try:
            assert script.stdout is not None
            assert script.stdout.readline() == "copied 3\n"
            (node,) = jobs.nodes.list()
            assert node.pid == script.pid
            assert [schedule.name for schedule in jobs.schedules.list()] == ["refresh"]
            script.send_signal(signal.SIGTERM)
            assert script.communicate(timeout=60) == ("", "")
            assert script.returncode == -signal.SIGTERM
        finally:
            script.kill()
    assert list(jobs.nodes.list()) == []
    jobs.stop()


# Flask


def test_the_flask_example_runs_tasks_in_its_context_in_each_worker_that_serves(tmp_path: Path) -> None:
    in_folder(tmp_path, "flask_app")
    with gunicorn(tmp_path, "--workers", "2") as server, httpx.Client(base_url=server.url) as client:
        run = client.post("/signup", params={"to": "ada"}).json()["run"]
        until("it ran", lambda: client.get(f"/runs/{run}").json()["state"] == "succeeded", server.log)
        assert client.get(f"/runs/{run}").json()["result"] == "sent to ada by shop@example.org"
        assert client.get("/runs/999").status_code == 404
        assert {node.pid for node in server.nodes()} <= server.family()
        server.process.send_signal(signal.SIGTERM)
        server.ends()


PRELOADED = """
from flask_app import jobs, refresh, site

jobs.schedules.add("nightly", "daily 03:00", refresh)
"""


def test_a_database_that_was_used_before_the_fork_of_preload_works_in_the_workers(tmp_path: Path) -> None:
    in_folder(tmp_path, "flask_app")
    (tmp_path / "preloaded.py").write_text(PRELOADED)
    flags = ("--workers", "2", "--preload")
    with gunicorn(tmp_path, *flags, module="preloaded") as server, httpx.Client(base_url=server.url) as client:
        run = client.post("/signup", params={"to": "ada"}).json()["run"]
        until("it ran", lambda: client.get(f"/runs/{run}").json()["state"] == "succeeded", server.log)
        assert server.process.pid not in {node.pid for node in server.nodes()}
        server.process.send_signal(signal.SIGTERM)
        server.ends()


def test_of_flasks_reloader_only_the_process_that_serves_is_a_node(tmp_path: Path) -> None:
    in_folder(tmp_path, "flask_app")
    words = ("flask", "--app", "flask_app:site", "run", "--port", "{port}", "--debug")
    with WebServer(tmp_path, *words, database="flask.db") as server:
        (node,) = server.until_nodes(1)
        assert node.pid != server.process.pid
        source = tmp_path / "flask_app.py"
        source.write_text(source.read_text().replace("shop@", "sales@"))
        until("that node has left", lambda: node.id not in {one.id for one in server.nodes()}, server.log)
        until("the next serves", lambda: server.answers() and server.nodes(), server.log)
        server.interrupt()
        server.ends_somehow()  # its reloader may kill the process that serves before that has drained


def test_flasks_server_without_its_reloader_drains_on_an_interrupt(tmp_path: Path) -> None:
    in_folder(tmp_path, "flask_app")
    words = ("flask", "--app", "flask_app:site", "run", "--port", "{port}", "--no-reload")
    with WebServer(tmp_path, *words, database="flask.db") as server:
        server.until_nodes(1)
        run = server.jobs.enqueue(Shell(f"touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done"))
        until("the work has begun", (tmp_path / "begun").exists, server.log)
        server.process.send_signal(signal.SIGINT)
        until("it drains", lambda: server.nodes()[0].state == "draining", server.log)
        (tmp_path / "go").touch()
        server.ends()
        assert server.jobs.runs.get(run.id).state == "succeeded"
        assert f"waiting for run {run.id}" in server.log()


@pytest.mark.parametrize("command", [["routes"], ["shell"]])
def test_a_command_of_flask_starts_nothing(command: list[str], tmp_path: Path) -> None:
    in_folder(tmp_path, "flask_app")
    done = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "flask_app:site", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        input="print(jobs)\n" if command == ["shell"] else "",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "flask.db").exists()
