"""`app.asgi()` in another app: page, REST and stream under a prefix, and the login of that app."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from litestar import Litestar, asgi
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import Mount

from ostinato import Identity, Ostinato
from ostinato.api.mount import MountedApp
from ostinato.config import Settings
from ostinato.errors import InvalidInput
from ostinato.tuning import Tuning
from tests.doors.mounting import BASE, MountClient

KEY = {"X-Origin-Key": "host"}


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Ostinato]:
    app = Ostinato(settings=Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}"))

    @app.task
    def hello() -> str:
        return "hello"

    yield app
    app.stop(grace=0)


def who(connection: HTTPConnection) -> Identity | None:
    """The host's login: a cookie with a name and a role."""
    name, _, role = connection.cookies.get("session", "").partition("-")
    return Identity(name, role) if name else None  # type: ignore[arg-type]  # a text, as it comes from a database


Ask = Callable[..., MountClient]


@pytest.fixture
def ask() -> Iterator[Ask]:
    """Makes clients of an ASGI app, which end with the test."""
    made: list[MountClient] = []

    def ask(app: Any, session: str | None = None, **options: Any) -> MountClient:
        made.append(MountClient(app, **options))
        if session is not None:
            made[-1].client.cookies.set("session", session)
        return made[-1]

    yield ask
    for client in made:
        client.close()


def on_fastapi(mounted: MountedApp) -> Any:
    api = FastAPI()
    api.mount("/jobs", mounted)
    return api


def on_starlette(mounted: MountedApp) -> Any:
    return Starlette(routes=[Mount("/jobs", mounted)])


def on_litestar(mounted: MountedApp) -> Any:
    # Litestar would set up the root logger of the process, for every test that comes after.
    return Litestar([asgi("/jobs", is_mount=True, copy_scope=True)(mounted)], logging_config=None)


def on_a_plain_router(mounted: MountedApp) -> Any:
    async def router(scope: Any, receive: Any, send: Any) -> None:
        cut = {**scope, "root_path": "/jobs", "path": scope["path"].removeprefix("/jobs")}
        await mounted(cut, receive, send)

    return router


FRAMEWORKS = [on_fastapi, on_starlette, on_litestar, on_a_plain_router]


@pytest.mark.parametrize("mount", FRAMEWORKS)
def test_page_rest_and_health_are_served_under_the_prefix(mount: Any, jobs: Ostinato, ask: Ask) -> None:
    client = ask(mount(jobs.asgi(who)), "ada-admin")
    page = client.get("/jobs/runs/1")
    assert page.status_code == 200
    assert '<meta name="ostinato-base" content="/jobs/" />' in page.text
    files = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert files
    assert [file for file in files if not file.startswith("/jobs/")] == []
    assert {client.get(file).status_code for file in files} == {200}
    assert client.get("/jobs/healthz").json() == {"ok": True}
    made = client.post("/jobs/api/runs", {"work": {"kind": "function", "task": "hello"}}, headers=KEY)
    assert made.status_code == 201
    assert made.headers["location"] == f"/jobs/api/runs/{made.json()['id']}"
    assert client.get(made.headers["location"], headers=KEY).json()["state"] == "queued"
    name = "a/b%2F c"
    body = {"name": name, "timing": "daily 03:00", "work": {"kind": "function", "task": "hello"}}
    there = client.post("/jobs/api/schedules", body, headers=KEY).headers["location"]
    assert client.get(there, headers=KEY).json()["name"] == name


def test_the_first_request_opens_the_database_and_starts_no_engine(jobs: Ostinato, ask: Ask) -> None:
    client = ask(on_fastapi(jobs.asgi(who)), "ada-admin")
    assert client.get("/jobs/api/overview", headers=KEY).json()["engine"]["here"] is False
    assert jobs.health()["node"] is None


def test_a_started_engine_is_the_one_that_the_page_tells_of(jobs: Ostinato, ask: Ask) -> None:
    jobs.start()
    client = ask(on_fastapi(jobs.asgi(who)), "ada-viewer")
    assert client.get("/jobs/api/overview", headers=KEY).json()["engine"]["here"] is True


def test_an_app_that_was_stopped_is_opened_again_by_the_next_request(jobs: Ostinato, ask: Ask) -> None:
    client = ask(on_fastapi(jobs.asgi(who)), "ada-viewer")
    assert client.get("/jobs/api/me", headers=KEY).status_code == 200
    jobs.stop()
    assert client.get("/jobs/api/me", headers=KEY).status_code == 200


def test_a_database_that_cannot_be_opened_is_told(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "not-a-folder").write_text("")
    jobs = Ostinato(settings=Settings(db=f"sqlite:///{tmp_path}/not-a-folder/jobs.db"))
    answer = ask(on_fastapi(jobs.asgi(who)), "ada-viewer").get("/jobs/api/me", headers=KEY)
    assert answer.status_code >= 500
    assert answer.headers["content-type"] == "application/problem+json"


# Logins of Ostinato


def test_without_a_callback_people_log_in_here_and_the_cookie_is_of_the_prefix(jobs: Ostinato, ask: Ask) -> None:
    client = ask(on_fastapi(jobs.asgi()))
    assert 'name="ostinato-login" content="here"' in client.get("/jobs/").text
    token = client.run(_token(jobs))
    made = client.post("/jobs/api/login", {"token": token})
    assert made.status_code == 200
    assert "Path=/jobs;" in made.headers["set-cookie"]
    key = {"X-Origin-Key": made.json()["origin_key"]}
    assert client.get("/jobs/api/me", headers=key).json()["who"] == "ci"
    assert client.get("/jobs/api/me").status_code == 401
    assert client.post("/jobs/api/logout", headers=key).status_code == 204
    assert client.get("/jobs/api/me", headers=key).status_code == 401


async def _token(jobs: Ostinato, role: str = "operator") -> str:
    _, secret = await jobs._host.arun(lambda container: container.services.access.make_token("ci", role, "tests"))
    return secret


def test_tokens_do_not_cross_the_network_in_the_clear(jobs: Ostinato, ask: Ask) -> None:
    there = ask(on_fastapi(jobs.asgi()), address="10.0.0.9")
    assert there.get("/jobs/").json()["type"] == "/problems/not-private"
    assert there.get("/jobs/healthz").status_code == 200
    # How its own people come in is for the host to say.
    assert ask(on_fastapi(jobs.asgi(who)), "ada-viewer", address="10.0.0.9").get("/jobs/").status_code == 200


def test_metrics_need_a_token_also_from_this_machine(jobs: Ostinato, ask: Ask) -> None:
    client = ask(on_fastapi(jobs.asgi()))
    assert client.get("/jobs/metrics").status_code == 401
    token = client.run(_token(jobs, "viewer"))
    assert client.get("/jobs/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 200


# Logins of the host


def test_the_hosts_users_are_who_they_are_there_with_their_roles(jobs: Ostinato, ask: Ask) -> None:
    mounted = on_fastapi(jobs.asgi(who))
    assert ask(mounted, "ada-viewer").get("/jobs/api/me", headers=KEY).json()["role"] == "viewer"
    run = {"work": {"kind": "function", "task": "hello"}}
    assert ask(mounted, "ada-viewer").post("/jobs/api/runs", run, headers=KEY).status_code == 403
    assert ask(mounted, "grace-operator").post("/jobs/api/runs", run, headers=KEY).status_code == 201
    shell = {"work": {"kind": "shell", "command": "true"}}
    assert ask(mounted, "grace-operator").post("/jobs/api/runs", shell, headers=KEY).status_code == 403
    admin = ask(mounted, "root-admin")
    assert admin.post("/jobs/api/runs", shell, headers=KEY).status_code == 201
    entries = admin.get("/jobs/api/audit", headers=KEY).json()["items"]
    done = [(entry["who"], entry["door"], entry["verb"]) for entry in entries if entry["verb"] != "denied"]
    assert done == [("root", "page", "run.enqueue"), ("grace", "page", "run.enqueue")]
    assert {entry["who"] for entry in entries if entry["verb"] == "denied"} == {"ada", "grace"}


def test_the_callback_may_be_a_coroutine_and_sees_the_request_as_the_host_does(jobs: Ostinato, ask: Ask) -> None:
    seen: list[tuple[str, Any, Any]] = []

    async def who(connection: HTTPConnection) -> Identity:
        seen.append((connection.url.path, connection.app, asyncio.get_running_loop()))
        return Identity("ada", "viewer")

    api = on_fastapi(jobs.asgi(who))
    client = ask(api)
    assert client.get("/jobs/api/me", headers=KEY).json()["who"] == "ada"
    ((path, app, loop),) = seen
    assert (path, app) == ("/jobs/api/me", api)
    # The engine may live on another loop: what is of the host is called on the host's.
    assert loop is client.run(_loop())
    assert jobs._host._lifetime is not None
    assert jobs._host._lifetime.loop is not loop


async def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_nobody_is_let_in_whom_the_host_does_not_know(jobs: Ostinato, ask: Ask) -> None:
    client = ask(on_fastapi(jobs.asgi(who)))
    page = client.get("/jobs/runs")
    assert (page.status_code, page.headers["content-type"]) == (401, "text/plain; charset=utf-8")
    assert "Log in to this site" in page.text
    assert client.get("/jobs/assets/../index.html").status_code == 401
    assert client.get("/jobs/%2e/index.html").status_code == 401
    assert client.get("/jobs/api/me", headers=KEY).status_code == 401


@pytest.mark.parametrize("mount", FRAMEWORKS)
def test_with_a_login_url_they_are_sent_there_and_can_come_back(mount: Any, jobs: Ostinato, ask: Ask) -> None:
    client = ask(mount(jobs.asgi(who, login_url="/sign-in?next={next}")))
    answer = client.get("/jobs/runs?state=failed")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=%2Fjobs%2Fruns%3Fstate%3Dfailed"
    assert client.get("/jobs/api/me", headers=KEY).status_code == 401


def test_there_is_no_login_of_ours_where_the_host_has_one(jobs: Ostinato, ask: Ask) -> None:
    client = ask(on_fastapi(jobs.asgi(who)), "ada-admin")
    assert 'name="ostinato-login" content="host"' in client.get("/jobs/").text
    token = client.run(_token(jobs))
    assert client.post("/jobs/api/login", {"token": token}).status_code == 403
    assert client.post("/jobs/api/logout", headers=KEY).status_code == 403


def test_the_cookie_of_the_host_alone_is_not_enough(jobs: Ostinato, ask: Ask) -> None:
    client = ask(on_fastapi(jobs.asgi(who)), "ada-admin")
    run = {"work": {"kind": "function", "task": "hello"}}
    assert client.get("/jobs/api/runs").status_code == 401
    assert client.post("/jobs/api/runs", run).status_code == 401
    # A form of another page cannot send the header; if the host lets its scripts do so, the origin tells.
    evil = {**KEY, "Origin": "http://127.0.0.1:9000"}
    assert client.post("/jobs/api/runs", run, headers=evil).status_code == 403
    assert client.get("/jobs/api/runs", headers=evil).status_code == 403
    assert client.get("/jobs/api/runs", headers={**KEY, "Origin": BASE}).json()["items"] == []
    assert client.get("/jobs/api/runs", headers={**KEY, "Host": "evil.example"}).status_code == 421


def test_tokens_of_ours_work_beside_the_hosts_login(jobs: Ostinato, ask: Ask) -> None:
    client = ask(on_fastapi(jobs.asgi(who)))
    ours = {"Authorization": f"Bearer {client.run(_token(jobs))}"}
    assert (
        client.get("/jobs/api/me", headers=ours).json() | {"who": "ci"}
        == client.get("/jobs/api/me", headers=ours).json()
    )
    wrong = {"Authorization": "Bearer ost_wrong"}
    client.client.cookies.set("session", "ada-admin")
    assert client.get("/jobs/api/me", headers={**wrong, **KEY}).status_code == 401


def test_a_token_of_the_host_is_for_the_host_to_know(jobs: Ostinato, ask: Ask) -> None:
    def who(connection: HTTPConnection) -> Identity | None:
        is_known = connection.headers.get("authorization") == "Bearer theirs"
        return Identity("robot", "viewer") if is_known else None

    client = ask(on_fastapi(jobs.asgi(who)))
    assert client.get("/jobs/api/me", headers={"Authorization": "Bearer theirs"}).json()["who"] == "robot"
    assert client.get("/jobs/api/me", headers={"Authorization": "Bearer other"}).status_code == 401


def test_a_callback_that_returns_something_else_is_an_error_and_lets_nobody_in(
    jobs: Ostinato, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    client = ask(on_fastapi(jobs.asgi(lambda _: "ada")))  # type: ignore[arg-type,return-value]
    assert client.get("/jobs/api/me", headers=KEY).status_code == 500
    assert "must return an Identity or None" in caplog.text


def test_a_callback_whose_own_wait_ran_out_is_not_said_to_have_been_slow(
    jobs: Ostinato, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    def who(_: HTTPConnection) -> Identity:
        raise TimeoutError("the directory did not answer")

    assert ask(on_fastapi(jobs.asgi(who))).get("/jobs/api/me", headers=KEY).status_code == 500
    assert "the directory did not answer" in caplog.text
    assert "has not answered within" not in caplog.text


def test_a_callback_that_does_not_answer_in_time_is_told_as_unavailable(tmp_path: Path, ask: Ask) -> None:
    settings = Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}", tuning=Tuning(host_login_seconds=0.05))
    jobs = Ostinato(settings=settings)

    async def hangs(_: HTTPConnection) -> Identity:
        await asyncio.Event().wait()
        raise AssertionError("it never ends")

    client = ask(on_fastapi(jobs.asgi(hangs)))
    try:
        answer = client.get("/jobs/api/me", headers=KEY)
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/login-unavailable")
        assert client.get("/jobs/").status_code == 503
    finally:
        jobs.stop(grace=0)


async def _sent_to_a_socket(app: Any) -> list[Any]:
    """What a socket of the page gets that only logs in, until it is closed."""
    login = '{"type": "login", "origin_key": "host"}'
    coming = iter([{"type": "websocket.connect"}, {"type": "websocket.receive", "text": login}])
    sent: list[Any] = []

    async def receive() -> Any:
        if (message := next(coming, None)) is None:
            await asyncio.Event().wait()
        return message

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "websocket",
        "scheme": "ws",
        "path": "/jobs/api/live",
        "raw_path": b"/jobs/api/live",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", BASE.removeprefix("http://").encode())],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8000),
        "subprotocols": [],
    }
    async with asyncio.timeout(60):
        await app(scope, receive, send)
    return sent


@pytest.mark.parametrize("at_first", [True, False])
def test_a_stream_whose_owner_the_host_cannot_tell_is_closed_with_a_reason(tmp_path: Path, at_first: bool) -> None:
    tuning = Tuning(live_identify_seconds=0.01)
    jobs = Ostinato(settings=Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}", tuning=tuning))
    asked = itertools.count()

    def who(_: HTTPConnection) -> Identity:
        if at_first or next(asked):
            raise OSError("the host's database is away")
        return Identity("ada")

    try:
        *_, last = asyncio.run(_sent_to_a_socket(on_fastapi(jobs.asgi(who))))
        assert (last["type"], last["code"]) == ("websocket.close", 1013)
        assert last["reason"] == "your login cannot be checked right now: try again later"
        assert at_first or next(asked) == 4  # the first, and three that failed
    finally:
        jobs.stop(grace=0)


def test_an_identity_has_a_name_and_a_role_that_exist() -> None:
    assert Identity("ada").role == "viewer"
    for name, role in (("", "viewer"), ("ada", "root")):
        with pytest.raises(InvalidInput):
            Identity(name, role)  # type: ignore[arg-type]


# Lifespans


def test_the_engine_runs_on_the_servers_loop_inside_another_lifespan(jobs: Ostinato) -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def mine(_: Any) -> AsyncIterator[dict[str, str]]:
        steps.append(f"opened, engine {_engine(jobs)}")
        yield {"pool": "open"}
        steps.append(f"closed, engine {_engine(jobs)}")

    async def serve() -> None:
        async with jobs.lifespan(mine)(object()) as state:
            assert state == {"pool": "open"}
            assert jobs._host._lifetime is not None
            assert jobs._host._lifetime.loop is asyncio.get_running_loop()
            steps.append(f"served, engine {_engine(jobs)}")

    asyncio.run(serve())
    assert steps == ["opened, engine False", "served, engine True", "closed, engine False"]


def _engine(jobs: Ostinato) -> bool:
    container = jobs._host.container
    return container is not None and container.has_engine


def test_with_the_engine_switched_off_only_the_database_is_opened(jobs: Ostinato) -> None:
    async def serve() -> None:
        async with jobs.lifespan(engine=False)(object()):
            assert jobs._host.container is not None
            assert not jobs._host.container.has_engine
            assert await jobs.aio.nodes.list() == []

    asyncio.run(serve())
    assert jobs._host.container is None


@pytest.mark.parametrize("engine", [True, False])
def test_a_lifespan_leaves_an_engine_alone_that_was_started_before_it(engine: bool, jobs: Ostinato) -> None:
    jobs.start()
    container = jobs._host.container

    async def serve() -> None:
        async with jobs.lifespan(engine=engine)(object()):
            assert _engine(jobs)

    asyncio.run(serve())
    assert _engine(jobs)
    assert jobs._host.container is container


def test_a_lifespan_stops_what_was_started_on_its_loop_after_it(jobs: Ostinato) -> None:
    async def serve() -> None:
        async with jobs.lifespan(engine=False)(object()):
            await jobs.aio.start()

    asyncio.run(serve())
    assert jobs._host.container is None
    assert jobs.nodes.list() == []


def test_a_lifespan_without_its_parentheses_is_told(jobs: Ostinato) -> None:
    async def serve() -> None:
        api = FastAPI(lifespan=jobs.lifespan)  # type: ignore[arg-type]  # as a type checker says, too
        async with api.router.lifespan_context(api):
            raise AssertionError("it cannot start")

    with pytest.raises(InvalidInput, match=r"write FastAPI\(lifespan=jobs.lifespan\(\)\), with the parentheses"):
        asyncio.run(serve())


def test_a_start_that_fails_is_told_and_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "not-a-folder").write_text("")
    jobs = Ostinato(settings=replace(Settings(), db=f"sqlite:///{tmp_path}/not-a-folder/jobs.db"))
    closed: list[str] = []

    @asynccontextmanager
    async def mine(_: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            closed.append("mine")

    async def serve() -> None:
        async with jobs.lifespan(mine)(object()):
            raise AssertionError("it cannot start")

    with pytest.raises(Exception, match="not-a-folder"):
        asyncio.run(serve())
    assert closed == ["mine"]
    assert jobs._host._lifetime is None


def test_served_by_itself_it_closes_the_database_at_the_end(jobs: Ostinato) -> None:
    sent: list[str] = []

    async def serve() -> None:
        await jobs.aio.runs.list()
        asked = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> dict[str, str]:
            return {"type": next(asked)}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await jobs.asgi()({"type": "lifespan"}, receive, send)

    asyncio.run(serve())
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert jobs._host.container is None
