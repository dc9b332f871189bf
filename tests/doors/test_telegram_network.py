"""The bot when Telegram fails, refuses or is asked by somebody else, and when its node goes."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato, Shell
from ostinato.tuning import Tuning
from tests.doors.command_line import CommandLine
from tests.doors.telegram_bot import ADMIN, MakeBot
from tests.telegram_server import TOKEN, TelegramServer


def status(app: Ostinato) -> dict[str, Any]:
    """What the health of the node says of the bot."""
    found: dict[str, Any] = app.health()["services"]["telegram"]
    return found


@pytest.mark.parametrize(
    "fault",
    [{"status": None}, {"status": 502}, {"status": 429, "retry_after": 1}, {"status": None, "after_effect": True}],
)
def test_a_network_that_breaks_loses_no_message(
    make_bot: MakeBot, telegram: TelegramServer, fault: dict[str, Any]
) -> None:
    telegram.fail("getMe", **fault)
    telegram.fail("getUpdates", times=2, **fault)
    app = make_bot()
    telegram.write(ADMIN, "/help")
    telegram.wait_for("/schedule list")
    telegram.fail("getUpdates", **fault)
    telegram.write(ADMIN, "/status")
    telegram.wait_for("1 node alive")
    telegram.wait_until(lambda: status(app)["status"] == "listens as @ostinato_test_bot")
    assert app.health()["ok"]


def test_an_answer_waits_as_long_as_telegram_asks(make_bot: MakeBot, telegram: TelegramServer) -> None:
    make_bot()
    telegram.fail("sendMessage", 429, retry_after=1)
    telegram.write(ADMIN, "/help")
    telegram.wait_for("/schedule list")
    assert telegram.count("sendMessage") == 2


def test_an_answer_that_cannot_be_sent_holds_up_nothing(make_bot: MakeBot, telegram: TelegramServer) -> None:
    make_bot()
    telegram.fail("sendMessage", 403)
    telegram.write(ADMIN, "/help")
    telegram.write(ADMIN, "/status")
    telegram.wait_for("1 node alive")


def test_a_wrong_token_is_told_and_not_tried_again_and_again(
    make_bot: MakeBot, telegram: TelegramServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TEST_BOT_TOKEN", TOKEN + "x")
    app = make_bot()
    telegram.wait_until(lambda: "does not know the bot's token" in str(status(app)["status"]))
    assert telegram.count("getMe") == 1
    assert app.health()["ok"]  # the node is well, and does what it is there for
    assert TOKEN not in caplog.text + str(app.health())
    assert "it tries again in 300 s" in caplog.text


def test_a_token_that_is_put_right_is_read_again(
    make_bot: MakeBot, telegram: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_BOT_TOKEN")
    app = make_bot(settings={"tuning": Tuning(telegram_refused_seconds=0.05)})
    telegram.wait_until(lambda: "environment has no TEST_BOT_TOKEN" in str(status(app)["status"]))
    monkeypatch.setenv("TEST_BOT_TOKEN", TOKEN)
    telegram.write(ADMIN, "/help")
    telegram.wait_for("/schedule list")


def test_another_program_with_the_same_token_is_told(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    telegram.fail("getUpdates", 409, times=1_000)
    telegram.wait_until(lambda: "another program" in str(status(app)["status"]))
    telegram.forget_faults()
    telegram.write(ADMIN, "/help")
    telegram.wait_for("/schedule list")


def test_an_update_that_cannot_be_read_keeps_back_no_other(make_bot: MakeBot, telegram: TelegramServer) -> None:
    telegram.add_raw({"message": {"message_id": "not a number"}})
    telegram.add_raw({"of_tomorrow": {}})
    telegram.write(ADMIN, "/help")
    make_bot()
    telegram.wait_for("/schedule list")


def test_without_chats_there_is_no_bot_and_the_log_says_why(
    make_bot: MakeBot, telegram: TelegramServer, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_bot(chats={})
    assert "telegram" not in app.health()["services"]
    assert "put your chat's id into [telegram.chats]" in caplog.text
    assert telegram.calls == []


def test_two_nodes_have_one_poller_and_the_other_takes_over(make_bot: MakeBot, telegram: TelegramServer) -> None:
    first, second = make_bot(), make_bot()
    telegram.write(ADMIN, "/help")
    telegram.wait_for("/schedule list")
    telegram.wait_until(lambda: "another node listens" in (status(first)["status"], status(second)["status"]))
    listening = second if status(first)["status"] == "another node listens" else first
    assert telegram.conflicts == 0
    listening.stop()
    telegram.write(ADMIN, "/status")
    telegram.wait_for("1 node alive")


def test_the_doctor_says_how_the_bot_is(
    make_bot: MakeBot, telegram: TelegramServer, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_TELEGRAM_TOKEN", TOKEN)
    db = f"sqlite:///{cli.folder}/ostinato.db"
    app = make_bot(db)
    telegram.wait_until(lambda: status(app)["status"])
    app.with_engine(lambda engine: engine.lease.renew())
    told = [one for one in cli("doctor", "--json").json if one["check"] == "telegram"]
    assert "no chat is allowed" in told[0]["text"]
    assert (told[1]["status"], told[1]["text"].partition(": ")[2]) == ("ok", "listens as @ostinato_test_bot")
    telegram.fail("getUpdates", 409, times=1_000)
    telegram.wait_until(lambda: not status(app)["well"])
    app.with_engine(lambda engine: engine.lease.renew())
    told = [one for one in cli("doctor", "--json").json if one["check"] == "telegram"]
    assert told[1]["status"] == "warn"
    assert "another program" in told[1]["text"]


@pytest.mark.parametrize("text", ["/schedule run job", "hello"])
def test_what_comes_while_the_database_is_away_is_done_when_it_is_back(
    make_bot: MakeBot, telegram: TelegramServer, tmp_path: Path, text: str
) -> None:
    app = make_bot(task="reply", settings={"tuning": Tuning(sqlite_lock_seconds=0.2, telegram_retry_seconds=0.02)})
    app.task("reply")(lambda payloads: None)
    app.schedules.add("job", "0 9 1 1 *", Shell("true"))
    telegram.write(ADMIN, "/help")
    telegram.wait_for("/schedule list")
    with sqlite3.connect(tmp_path / "jobs.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        telegram.write(ADMIN, text)
        telegram.wait_until(lambda: not status(app)["well"])
        other.execute("ROLLBACK")
    telegram.wait_until(lambda: app.runs.list(schedule="job") or app.sessions.list())
    telegram.wait_until(lambda: status(app)["well"])
    assert len(app.runs.list()) == 1
