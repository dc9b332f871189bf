"""`enabled` and OSTINATO_ENABLED=0 keep a process from starting an engine; it can still enqueue and look."""

from __future__ import annotations

import asyncio
import logging
import signal

import httpx
import pytest

from ostinato import InvalidInput, Ostinato
from ostinato.config import Settings
from tests.doors.command_line import CommandLine, eventually, page_address

MEMORY = "sqlite://:memory:"


@pytest.fixture
def switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_ENABLED", "0")


def check_it_only_looks(app: Ostinato, why: str) -> None:
    health = app.health()
    assert (health["ok"], health["node"]) == (False, None)
    assert why in health["reason"]
    assert app.nodes.list() == []


def test_an_app_that_is_switched_off_in_code_enqueues_and_looks_but_runs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Ostinato(MEMORY, enabled=False)
    job = app.task("job", schedule="every 1h")(lambda: None)
    with caplog.at_level(logging.INFO, "ostinato"):
        app.start()
    try:
        check_it_only_looks(app, "the code says enabled=False")
        assert "the engine is switched off: the code says enabled=False; none is started in this process" in caplog.text
        assert app.runs.get(job.enqueue().id).state == "queued"
        assert app.schedules.list() == []  # whoever starts no engine declares nothing
    finally:
        app.stop()


@pytest.mark.usefixtures("switched_off")
def test_the_variable_wins_over_the_code_and_over_settings_made_by_hand() -> None:
    for app in (Ostinato(MEMORY, enabled=True), Ostinato(settings=Settings(db=MEMORY))):
        app.start()
        try:
            check_it_only_looks(app, "OSTINATO_ENABLED is 0")
        finally:
            app.stop()


@pytest.mark.usefixtures("switched_off")
def test_the_app_as_a_context_and_the_async_start_obey_the_switch_too() -> None:
    async def use() -> None:
        async with Ostinato(MEMORY) as app:
            assert "OSTINATO_ENABLED" in (await app.aio.health())["reason"]
        other = Ostinato(MEMORY)
        await other.aio.start()
        assert (await other.aio.health())["node"] is None
        await other.aio.stop()

    asyncio.run(use())


def test_settings_and_the_switch_are_not_given_both() -> None:
    with pytest.raises(InvalidInput, match="not both"):
        Ostinato(settings=Settings(), enabled=False)


@pytest.mark.usefixtures("switched_off")
def test_up_serves_the_page_without_an_engine_and_says_why(cli: CommandLine) -> None:
    with cli.start("up", "--app", "jobs:app", "--port", "0", "--log-format", "text") as up:
        address = page_address(up)
        assert httpx.get(f"{address}/healthz", timeout=60).status_code == 200
        assert cli.ok("node", "ls", "--json").json == []
        assert "login?code=" not in up.err, "a log is kept and read by others"
        assert "ostinato login --port" in up.err
        jobs = cli.folder / "jobs.py"
        good = jobs.read_text()
        jobs.write_text(good + "1 / 0\n")
        up.signal(signal.SIGUSR1)
        eventually(lambda: "ZeroDivisionError" in up.err, "the trial has failed")
        assert httpx.get(f"{address}/healthz", timeout=60).status_code == 200
        jobs.write_text(good)
        up.signal(signal.SIGUSR1)
        eventually(lambda: up.err.count("Ctrl-C to stop") == 2, "it has started anew")
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    assert "no engine here: the engine is switched off: OSTINATO_ENABLED is 0" in up.err


def test_in_a_folder_that_was_deleted_nothing_starts_and_it_says_why(cli: CommandLine) -> None:
    with cli.start("worker", by='mkdir gone && cd gone && rmdir ../gone && exec "$@"') as worker:
        assert worker.wait() == 2
    assert worker.err == "error: the current folder was deleted; start it in another\n"


def test_a_worker_that_is_switched_off_ends_and_says_why(cli: CommandLine) -> None:
    (cli.folder / "ostinato.toml").write_text("enabled = false\n")
    with cli.start("worker") as worker:
        assert worker.wait() == 1
    assert "enabled is false in ostinato.toml" in worker.err
    # Who asks why nothing runs learns of the switch, and is not told to start what would not start.
    cli.ok("db", "migrate")
    (engine,) = [one for one in cli("doctor", "--json").json if one["check"] == "engine"]
    assert engine["text"] == (
        "no engine is running on this database; the engine is switched off: enabled is false in ostinato.toml"
    )
    assert engine["fix"] == "switch it on, or start 'ostinato worker' where it is on"
    listed = cli.ok("node", "ls").err
    assert "enabled is false in ostinato.toml" in listed
    assert "start one" not in listed
    assert "nothing to do" in worker.err
