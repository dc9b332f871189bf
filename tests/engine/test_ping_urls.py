"""`ping_url`: somebody who watches from outside is called when a run starts and ends, and no run waits for that."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from ostinato import Ostinato, RunState, Shell, Snooze
from ostinato.execution import ping_urls
from ostinato.testing import drain, simulate
from ostinato.tuning import Tuning
from tests.engine.conftest import MakeApp, eventually
from tests.engine.http_server import Server, Visit, answer, serving

pytest_plugins = ("tests.engine.http_fixtures",)


@pytest.fixture
def tuning(tuning: Tuning) -> Tuning:
    return replace(tuning, ping_url_waits=(0.0, 0.0), ping_url_seconds=30.0)


@pytest.fixture
def url(server: Server) -> str:
    """What is called, and answers well."""
    for path in ("/hc/key/start", "/hc/key/fail"):
        server.on(path, answer())
    return server.on("/hc/key", answer())


def paths(server: Server, count: int) -> list[str]:
    """Where the first so many calls went to."""
    eventually(lambda: len(server.received) >= count)
    return [request.path for request in server.received]


def test_a_run_tells_its_start_and_its_success(web: Ostinato, server: Server, url: str) -> None:
    web.task("job")(lambda: None)
    web.schedules.add("job", "every 1h", "job", ping_url=url)
    web.schedules.trigger("job")
    drain(web)
    assert paths(server, 2) == ["/hc/key/start", "/hc/key"]
    assert {request.method for request in server.received} == {"POST"}


def test_a_failure_tells_why_and_what_was_printed_last(web: Ostinato, server: Server, url: str) -> None:
    web.enqueue(Shell("echo one; echo the disk is full >&2; exit 3"), retry=0, ping_url=url)
    drain(web)
    assert paths(server, 2) == ["/hc/key/start", "/hc/key/fail"]
    body = server.received[1].body.decode()
    assert "status 3" in body
    assert "the disk is full" in body


def test_only_the_last_attempt_is_an_end(web: Ostinato, server: Server, url: str) -> None:
    attempts: list[int] = []

    @web.task("job", retry=1)
    def job() -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("not yet")

    web.enqueue("job", ping_url=url)
    simulate(web, lasting="1h")
    assert paths(server, 3) == ["/hc/key/start", "/hc/key/start", "/hc/key"]


def test_a_snooze_is_no_end(web: Ostinato, server: Server, url: str) -> None:
    @web.task("job")
    def job() -> None:
        raise Snooze("5m")

    web.enqueue("job", ping_url=url)
    drain(web)
    assert paths(server, 1) == ["/hc/key/start"]


def test_a_server_that_hangs_delays_nothing(web: Ostinato, server: Server) -> None:
    server.on("/hc/start", Visit.wait_until_gone)
    web.task("job")(lambda: None)
    run = web.enqueue("job", ping_url=server.on("/hc", answer()))
    drain(web)
    assert run.get().state is RunState.SUCCEEDED
    assert paths(server, 1) == ["/hc/start"]


@pytest.fixture
def patient(make_app: MakeApp, tuning: Tuning) -> Ostinato:
    """An app that waits for an answer for longer than any test."""
    tuning = replace(tuning, ping_url_seconds=3600.0)
    app = make_app("sqlite://:memory:", http_allow=("127.0.0.0/8",), tuning=tuning, slots=100)
    app.task("job")(lambda: None)
    return app


def test_a_server_that_hangs_does_not_delay_the_calls_of_others(patient: Ostinato, server: Server, url: str) -> None:
    with serving() as hanging:
        for path in ("/start", "/"):
            hanging.on(path, Visit.wait_until_gone)
        patient.start()
        for _ in range(60):
            patient.enqueue("job", ping_url=hanging.url("/"))
        eventually(lambda: len(hanging.received) == ping_urls.AT_ONE_SERVER)
        patient.enqueue("job", ping_url=url)
        assert paths(server, 2) == ["/hc/key/start", "/hc/key"]
        assert len(hanging.received) == ping_urls.AT_ONE_SERVER
        patient.stop(grace=0)


@pytest.mark.parametrize("bound", ["MOST_FOR_ONE_SERVER", "MOST_IN_ALL"])
def test_what_waits_for_servers_that_hang_is_bounded_and_the_rest_is_dropped_and_said(
    patient: Ostinato,
    server: Server,
    bound: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(ping_urls, bound, 20)
    server.on("/key/start", Visit.wait_until_gone)
    patient.start()
    runs = [patient.enqueue("job", ping_url=server.url("/key")) for _ in range(60)]
    for run in runs:
        run.wait(timeout=60)
    patient.stop(grace=0)
    said = [line for line in caplog.messages if "of ping_url dropped" in line]
    assert 1 <= len(said) <= 2, said
    assert said[-1].endswith("dropped so far")
    assert server.url() not in caplog.text


def test_a_server_in_trouble_is_called_again(web: Ostinato, server: Server) -> None:
    def stumbles(visit: Visit) -> None:
        visit.answer("503 Service Unavailable" if len(server.received) < 3 else "200 OK")

    server.on("/hc/start", stumbles)
    web.task("job")(lambda: None)
    web.enqueue("job", ping_url=server.on("/hc", answer()))
    drain(web)
    assert paths(server, 4) == ["/hc/start", "/hc/start", "/hc/start", "/hc"]


def test_what_is_refused_is_only_logged_and_without_its_secret(
    web: Ostinato, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    web.task("job")(lambda: None)
    run = web.enqueue("job", ping_url=server.url("/secret-key-of-somebody"))
    drain(web)
    assert run.get().state is RunState.SUCCEEDED
    with caplog.at_level(logging.WARNING, "ostinato.execution"):
        eventually(lambda: len([line for line in caplog.messages if "ping_url" in line]) == 2)
    assert "HTTP 404" in caplog.text
    assert "secret-key" not in caplog.text


def test_an_address_that_is_not_public_is_called_only_if_it_is_allowed(
    memory_app: Ostinato, server: Server, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory_app.task("job")(lambda: None)
    memory_app.enqueue("job", ping_url=url)
    drain(memory_app)
    eventually(lambda: len([line for line in caplog.messages if "http_allow" in line]) == 2)
    assert server.received == []
    assert "/hc/key" not in caplog.text


def test_the_address_may_be_a_reference(
    web: Ostinato, server: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HC_URL", url)
    (tmp_path / "hc").write_text(f"{url}\n", encoding="utf-8")
    web.task("job")(lambda: None)
    for reference in ("env:HC_URL", f"file:{tmp_path}/hc"):
        web.enqueue("job", ping_url=reference)
        drain(web)
    assert len(paths(server, 4)) == 4


def test_a_query_stays_behind_the_path(web: Ostinato, server: Server, url: str) -> None:
    web.task("job")(lambda: None)
    web.enqueue("job", ping_url=f"{url}?rid=1")
    drain(web)
    assert paths(server, 2) == ["/hc/key/start?rid=1", "/hc/key?rid=1"]


def test_a_stop_waits_for_what_is_on_its_way(make_app: MakeApp, server: Server, url: str) -> None:
    app = make_app("sqlite://:memory:", http_allow=("127.0.0.0/8",))
    app.task("job")(lambda: None)
    app.start()
    run = app.enqueue("job", ping_url=url)
    eventually(lambda: run.get().ended)
    app.stop()
    assert [request.path for request in server.received] == ["/hc/key/start", "/hc/key"]
