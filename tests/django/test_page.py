"""The page in an ASGI project, behind the login of its staff; and the engine, from uvicorn's lifespan to its end."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from websockets.sync.client import connect

from tests.django.projects import TICKS, copy_example
from tests.doors.web_servers import WebServer, until

pytestmark = pytest.mark.timeout(300)

KEY = {"X-Origin-Key": "host"}
USERS = """
from django.contrib.auth.models import User
User.objects.create_superuser("boss", password="open sesame")
User.objects.create_user("ada", password="open sesame", is_staff=True)
User.objects.create_user("customer", password="open sesame")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    project = copy_example(tmp_path_factory.mktemp("example"))
    project.add("shop/tasks.py", TICKS)
    project.shell(USERS)
    words = ("uvicorn", "mysite.asgi:application", "--port", "{port}")
    with project.served(*words, ready=None) as server:
        (node,) = server.until_nodes(1)
        assert node.pid == server.process.pid
        until("it ticks", project.ticks, server.log)
        until("it serves", server.answers, server.log)
        yield server
        server.process.send_signal(signal.SIGTERM)
        server.ends()


@contextmanager
def logged_in(server: WebServer, name: str) -> Iterator[httpx.Client]:
    """A browser that has logged in at the admin, on its way to the page."""
    with httpx.Client(base_url=server.url) as client:
        log_in(client, name)
        yield client


def log_in(client: httpx.Client, name: str) -> None:
    there = client.get("/jobs/", follow_redirects=False).headers["location"]
    assert there == "/admin/login/?next=%2Fjobs%2F"
    form = client.get(there)
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form.text)
    assert found is not None
    data = {"csrfmiddlewaretoken": found[1], "username": name, "password": "open sesame", "next": "/jobs/"}
    client.post(there, data=data)


def test_a_superuser_is_an_admin_and_is_named_in_the_audit_log(server: WebServer) -> None:
    with logged_in(server, "boss") as boss:
        page = boss.get("/jobs/")
        assert '<meta name="ostinato-base" content="/jobs/" />' in page.text
        body = {"work": {"kind": "function", "task": "count_orders"}}
        assert boss.post("/jobs/api/runs", json=body, headers=KEY).status_code == 201
        entries = boss.get("/jobs/api/audit", headers=KEY).json()["items"]
        assert ("boss", "page", "run.enqueue") in {(entry["who"], entry["door"], entry["verb"]) for entry in entries}
        assert boss.get("/admin/ostinato/run/").status_code == 200
        assert "/jobs/schedules/tick" in boss.get("/admin/ostinato/schedule/tick/change/").text


def test_a_page_of_another_origin_gets_nothing(server: WebServer) -> None:
    with logged_in(server, "boss") as boss:
        assert boss.get("/jobs/api/runs").status_code == 401
        assert boss.get("/jobs/api/runs", headers={**KEY, "Origin": "https://evil.example"}).status_code == 403
        body = {"work": {"kind": "function", "task": "count_orders"}}
        evil = {**KEY, "Origin": "https://evil.example"}
        assert boss.post("/jobs/api/runs", json=body, headers=evil).status_code == 403


def test_staff_are_viewers_and_customers_are_strangers(server: WebServer) -> None:
    with logged_in(server, "ada") as ada:
        assert ada.get("/jobs/api/runs", headers=KEY).status_code == 200
        body = {"work": {"kind": "function", "task": "count_orders"}}
        assert ada.post("/jobs/api/runs", json=body, headers=KEY).status_code == 403
    with logged_in(server, "customer") as customer:
        assert customer.get("/jobs/api/runs", headers=KEY).status_code == 401


def test_the_stream_is_open_to_staff_alone(server: WebServer) -> None:
    live = server.url.replace("http", "ws") + "/jobs/api/live"
    with connect(live) as stranger:
        stranger.send(json.dumps({"type": "login", "origin_key": "host"}))
        assert json.loads(stranger.recv())["problem"]["status"] == 401
    with logged_in(server, "ada") as ada:
        cookie = {"Cookie": f"sessionid={ada.cookies['sessionid']}"}
        with connect(live, additional_headers=cookie) as socket:
            socket.send(json.dumps({"type": "login", "origin_key": "host"}))
            socket.send(json.dumps({"type": "subscribe", "topic": "overview"}))
            assert json.loads(socket.recv())["type"] == "subscribed"


def test_the_rest_of_the_site_is_the_projects(server: WebServer) -> None:
    assert httpx.get(f"{server.url}/jobsearch").status_code == 404
    run = httpx.post(f"{server.url}/orders", params={"mail": "ada@example.org"}).json()["run"]
    until("it ran", lambda: httpx.get(f"{server.url}/runs/{run}").json()["state"] == "succeeded", server.log)
