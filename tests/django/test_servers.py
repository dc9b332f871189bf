"""The example under real servers: which of their processes is a node, and from when on; and each due time runs once."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from pathlib import Path

import httpx
import pytest

from tests.django.projects import TICKS, Project, copy_example
from tests.doors.web_servers import WebServer, until

pytestmark = pytest.mark.timeout(600)

GUNICORN = ("gunicorn", "mysite.wsgi", "--bind", "127.0.0.1:{port}", "--no-control-socket", "--workers", "2")
FIXTURE = """[{"model": "shop.order", "pk": 1, "fields": {"mail": "ada@example.org", "confirmed": true}}]"""
ASKS_ITSELF = """
from django.core.management.base import BaseCommand
from django.core.wsgi import get_wsgi_application
from wsgiref.util import setup_testing_defaults

from ostinato.integrations.django import jobs
from ostinato.integrations.django.serving import watch


class Command(BaseCommand):
    def handle(self, **options):
        environment = {"PATH_INFO": "/admin/login/", "HTTP_HOST": "localhost"}
        setup_testing_defaults(environment)
        answers = []
        b"".join(get_wsgi_application()(environment, lambda status, headers: answers.append(status)))
        print(answers, watch(jobs).is_started)
"""
OWN_GUNICORN = """
import os, sys

os.environ["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
from gunicorn.app.base import BaseApplication
from mysite.wsgi import application


class Site(BaseApplication):
    def load_config(self):
        for name, value in {"bind": sys.argv[1], "workers": 2, "control_socket_disable": True}.items():
            self.cfg.set(name, value)

    def load(self):
        return application


Site().run()
"""


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Made once: to migrate takes a while."""
    return copy_example(tmp_path_factory.mktemp("example"))


@pytest.fixture
def project(migrated: Project, tmp_path: Path) -> Project:
    shutil.copytree(migrated.folder, tmp_path / "shop_of_django")
    made = Project(tmp_path / "shop_of_django")
    made.add("shop/tasks.py", TICKS)
    return made


def once_each(server: WebServer) -> None:
    """No due time of `tick` has run twice."""
    due = [run.due_at for run in server.jobs.runs.list(schedule="tick", limit=500)]
    assert len(due) == len(set(due)) > 0


def test_of_runserver_only_the_reloaders_child_is_a_node_without_any_request(project: Project) -> None:
    words = ("manage", "runserver", "127.0.0.1:{port}")
    with project.served(*words, ready=None) as server:
        until("it ticks", lambda: len(project.ticks()) >= 2, server.log)
        (node,) = server.nodes()
        assert node.pid in server.family()
        assert set(project.ticks()) == {node.pid}
        source = project.folder / "shop" / "tasks.py"
        source.write_text(source.read_text().replace("os.getpid()", "0"))
        until("the new code ticks", lambda: project.ticks()[-1] == 0, server.log)
        until("the next is the only node", lambda: [n.id for n in server.nodes()] not in ([], [node.id]), server.log)
        # No old code runs beside it.
        after = project.ticks()[project.ticks().index(0) :]
        assert set(after) == {0}
        once_each(server)
        server.interrupt()
        until("the server ends", lambda: server.process.poll() is not None, server.log)
        until("no process is left", lambda: not server.family(), server.log)


def test_runserver_without_the_reloader_tries_again_while_the_ledger_is_away_and_drains_on_sigterm(
    project: Project,
) -> None:
    away = project.folder / "away"
    away.write_text("")
    words = ("manage", "runserver", "127.0.0.1:{port}", "--noreload")
    variables = {"OSTINATO_DB": f"sqlite:///{away}/ostinato.db"}
    with project.served(*words, database="away/ostinato.db", **variables) as server:
        until("it says so", lambda: "the engine could not be started" in server.log(), server.log)
        away.unlink()
        away.mkdir()
        until("it ticks", project.ticks, server.log)
        (node,) = server.until_nodes(1)
        assert node.pid == server.process.pid
        server.process.send_signal(signal.SIGTERM)
        server.ends()


def test_runserver_without_a_port_starts_nothing(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = project.manage("runserver", f"127.0.0.1:{port}", "--noreload")
    assert "already in use" in done.stderr
    assert not (project.folder / "ostinato.db").exists()


@pytest.mark.parametrize("flags", [(), ("--preload",)], ids=["", "preload"])
def test_every_worker_of_gunicorn_is_a_node_before_its_first_request(flags: tuple[str, ...], project: Project) -> None:
    with project.served(*GUNICORN, *flags, ready=None) as server, httpx.Client(base_url=server.url) as client:
        nodes = server.until_nodes(2)
        assert {node.pid for node in nodes} == server.family()
        assert server.process.pid not in server.family()
        # Told although the project sets no logging up.
        said = [f"the engine runs in process {node.pid}: 4 tasks" for node in nodes]
        until("they say so", lambda: all(line in server.log() for line in said), server.log)
        run = client.post("/orders", params={"mail": "ada@example.org"}).json()["run"]
        until("it ran", lambda: client.get(f"/runs/{run}").json()["state"] == "succeeded", server.log)
        assert client.get(f"/runs/{run}").json()["result"] == "sent to ada@example.org"
        until("it ticks", lambda: len(project.ticks()) >= 3, server.log)
        once_each(server)
        # A worker that is replaced is a node too, also if its master has loaded the project.
        killed = nodes[0].pid
        os.kill(killed, signal.SIGKILL)
        until(
            "the new worker is a node",
            lambda: {node.pid for node in server.nodes()} >= server.family() > set(),
            server.log,
        )
        server.process.send_signal(signal.SIGTERM)
        until("the server ends", lambda: server.process.poll() is not None, server.log)
        assert {node.pid for node in server.nodes()} <= {killed}


def test_workers_are_nodes_where_the_application_was_made_before_there_was_a_gunicorn(project: Project) -> None:
    project.add("own_gunicorn.py", OWN_GUNICORN)
    with project.served("own_gunicorn", "127.0.0.1:{port}", ready=None) as server:
        nodes = server.until_nodes(2)
        assert {node.pid for node in nodes} == server.family()
        server.process.send_signal(signal.SIGTERM)
        until("the server ends", lambda: server.process.poll() is not None, server.log)


def test_testserver_starts_nothing_and_has_a_ledger_of_its_own(project: Project) -> None:
    project.add("orders.json", FIXTURE)
    with project.served("manage", "testserver", "orders.json", "--addrport", "127.0.0.1:{port}") as server:
        run = httpx.post(f"{server.url}/orders", params={"mail": "ada@example.org"}).json()["run"]
        assert httpx.get(f"{server.url}/runs/{run}").json()["state"] == "queued"
        assert "has test databases, and runs no engine" in server.log()
        server.interrupt()
        until("the server ends", lambda: server.process.poll() is not None, server.log)
    assert not (project.folder / "ostinato.db").exists()
    assert project.ticks() == []


def test_a_command_that_asks_the_project_for_a_page_starts_nothing(project: Project) -> None:
    (project.folder / "shop" / "management" / "commands").mkdir(parents=True)
    for package in ("management", "management/commands"):
        project.add(f"shop/{package}/__init__.py", "")
    project.add("shop/management/commands/warm.py", ASKS_ITSELF)
    # An empty switch, as an unset variable of a compose file is one, says nothing.
    assert project.ok("warm", SCHEDULER_ENABLED="").strip() == "['200 OK'] False"


def test_the_switch_keeps_the_engine_out_and_the_process_can_still_enqueue(project: Project) -> None:
    words = ("uvicorn", "mysite.asgi:application", "--port", "{port}")
    with project.served(*words, SCHEDULER_ENABLED="0") as server:
        run = httpx.post(f"{server.url}/orders", params={"mail": "ada@example.org"}).json()["run"]
        assert httpx.get(f"{server.url}/runs/{run}").json()["state"] == "queued"
        assert server.nodes() == []
        assert "SCHEDULER_ENABLED is 0 in the environment; none is started in this process" in server.log()
        server.process.send_signal(signal.SIGTERM)
        server.ends()
    assert project.ticks() == []


def test_a_reload_of_uvicorn_and_ctrl_c_leave_neither_a_process_nor_a_node(project: Project) -> None:
    words = ("uvicorn", "mysite.asgi:application", "--port", "{port}", "--reload")
    with project.served(*words, ready=None) as server:
        (first,) = server.until_nodes(1)
        project.add("shop/tasks.py", "# changed\n")
        until("the next is the only node", lambda: {one.id for one in server.nodes()} - {first.id}, server.log)
        until("the first has left", lambda: first.id not in {one.id for one in server.nodes()}, server.log)
        assert first.pid not in server.family()
        server.interrupt()
        server.ends()
