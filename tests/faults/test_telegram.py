"""The bot over nodes that are killed: another one listens, and what came twice is done once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato import Ostinato
from tests.faults.nodes import Nodes, nodes
from tests.telegram_server import PATIENCE, TOKEN, TelegramServer, telegram_server

CHAT = 42


@pytest.fixture
def telegram() -> Iterator[TelegramServer]:
    with telegram_server() as server:
        yield server


def environment(telegram: TelegramServer, **more: str) -> dict[str, str]:
    return {
        "FAULTS_LEASE": "2s",
        "OSTINATO_TELEGRAM_TOKEN": TOKEN,
        "OSTINATO_TELEGRAM_API": telegram.url,
        "OSTINATO_TELEGRAM_CHATS": f"{CHAT}=admin",
        "OSTINATO_TELEGRAM_TASK": "reply",
        **more,
    }


def listening(app: Ostinato, made: Nodes) -> subprocess.Popen[str] | None:
    """The process that listens, as far as the beats say it."""
    pids = [node.pid for node in app.nodes.list() if _is_listening(node.services) and node.state == "alive"]
    return next((process for process in made.running if process.pid in pids), None)


def _is_listening(services: dict[str, dict[str, object]]) -> bool:
    return str(services.get("telegram", {}).get("status")).startswith("listens")


def test_a_node_that_is_killed_leaves_listening_to_another(
    app: Ostinato, url: str, telegram: TelegramServer, tmp_path: Path
) -> None:
    with nodes(url, tmp_path / "log", **environment(telegram)) as made:
        made.start()
        made.start()
        telegram.write(CHAT, "/help")
        telegram.wait_for("/schedule list")
        made.kill(telegram.wait_until(lambda: listening(app, made), "a beat of who listens"))
        telegram.write(CHAT, "/status")
        telegram.wait_for("0 schedules")
        telegram.wait_until(lambda: listening(app, made) is made.running[0], "the beat of the other")


# On one database each: aiogram takes every process seconds to load, and what the databases do is in the store suite.
@pytest.mark.parametrize(
    ("url", "place"), [("sqlite", "telegram.done"), ("postgres", "telegram.handled")], indirect=["url"]
)
def test_a_command_whose_node_died_is_not_done_again(
    app: Ostinato, url: str, telegram: TelegramServer, tmp_path: Path, place: str
) -> None:
    app.schedules.add("job", "0 9 1 1 *", "work", overlap="allow")
    with nodes(url, tmp_path / "log", OSTINATO_FAILPOINTS=f"{place}=kill", **environment(telegram)) as first:
        killed = first.start()
        telegram.write(CHAT, "/schedule run job")
        killed.wait(PATIENCE)
    with nodes(url, tmp_path / "log", **environment(telegram)) as second:
        second.start()
        told = "interrupted by a restart" if place == "telegram.done" else "job: run "
        telegram.wait_handled(telegram.write(CHAT, "/help"))
        telegram.wait_for(told)
        assert len(app.runs.list(schedule="job")) == 1


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_text_whose_node_died_is_one_message(
    app: Ostinato, url: str, telegram: TelegramServer, tmp_path: Path
) -> None:
    with nodes(url, tmp_path / "log", OSTINATO_FAILPOINTS="telegram.handled=kill", **environment(telegram)) as first:
        killed = first.start()
        telegram.write(CHAT, "hello")
        killed.wait(PATIENCE)
    with nodes(url, tmp_path / "log", **environment(telegram)) as second:
        second.start()
        telegram.wait_handled(telegram.write(CHAT, "/help"))
        (run,) = app.runs.list(session=f"dm:{CHAT}")
        assert app.runs.wait(run.id, timeout=60).state == "succeeded"
