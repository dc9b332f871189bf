"""`ostinato doctor` about a bot that is set up by half: it says what is missing, and how to add it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from ostinato.cli import doctor_telegram
from tests.doors.command_line import JOBS, CommandLine

TOKEN = "42:not-a-real-token"


class Told:
    """What the doctor says of the bot under these settings."""

    def __init__(self, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cli = cli
        self._monkeypatch = monkeypatch

    def __call__(self, *argv: str, **settings: str) -> list[str]:
        for name in ("token", "chats", "agent", "task"):
            variable = f"OSTINATO_TELEGRAM_{name.upper()}"
            if name in settings:
                self._monkeypatch.setenv(variable, settings[name])
            else:
                self._monkeypatch.delenv(variable, raising=False)
        found = [one for one in self._cli("doctor", "--json", *argv).json if one["check"] == "telegram"]
        assert all(one["status"] == "warn" for one in found)
        return [f"{one['text']}; {one['fix']}" for one in found]


@pytest.fixture
def told(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Told:
    return Told(cli, monkeypatch)


def test_nothing_is_said_where_nobody_wants_a_bot(told: Told) -> None:
    assert told() == []


def test_a_token_without_chats_answers_nobody_also_before_there_is_a_database(told: Told, cli: CommandLine) -> None:
    (before,) = told(token=TOKEN)
    assert "no chat is allowed: the bot is not started, and answers nobody" in before
    assert "[telegram.chats]" in before
    cli.ok("db", "migrate")
    assert told(token=TOKEN) == [before]
    assert told(token=TOKEN, chats="42=admin") == []


def test_chats_or_an_agent_without_a_token_are_told(told: Told) -> None:
    (chats,) = told(chats="42=admin")
    assert "[telegram] has chats but no token: the bot is not started" in chats
    assert "OSTINATO_TELEGRAM_TOKEN" in chats
    (task,) = told(task="reply")
    assert "[telegram] has a task but no token" in task


def test_a_token_that_cannot_be_read_is_told(told: Told, tmp_path: Path) -> None:
    (unread,) = told(token=f"file:{tmp_path}/nothing", chats="42=admin")
    assert f"{tmp_path}/nothing" in unread


def test_an_agent_or_a_task_that_is_not_there_is_told(told: Told, cli: CommandLine) -> None:
    (agent,) = told(token=TOKEN, chats="42=admin", agent="nobody")
    assert "texts go to the agent 'nobody', which is not configured" in agent
    cli.ok("db", "migrate")
    (task,) = told(token=TOKEN, chats="42=admin", task="nobody")
    assert "texts go to the task 'nobody', which is not registered" in task
    (cli.folder / "jobs.py").write_text(JOBS)
    assert told("--app", "jobs:app", token=TOKEN, chats="42=admin", task="hello") == []


def test_missing_packages_are_told(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_telegram, "find_spec", lambda name: None)
    (missing,) = told(token=TOKEN, chats="42=admin")
    assert "pip install 'ostinato[telegram]'" in missing


def test_a_channel_whose_package_is_missing_is_told(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert importlib.util.find_spec("apprise") is not None
    cli.ok("notify", "add", "phone", "json://127.0.0.1:9/x")
    monkeypatch.setitem(sys.modules, "apprise", None)
    found = [one for one in cli("doctor", "--json").json if one["check"] == "channels"]
    assert ["pip install 'ostinato[notify]'" in one["text"] for one in found] == [True]
