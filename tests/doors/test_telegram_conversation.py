"""Texts that are no commands: they go to the session of their chat, and the chat shows that somebody works on them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from ostinato import Ostinato
from ostinato.models.access import AuditFilter
from ostinato.models.notification import ChannelDraft
from ostinato.models.session_options import read_session_defaults
from tests.doors.telegram_bot import ADMIN, GROUP, OPERATOR, VIEWER, MakeBot
from tests.engine.stand_in import StandIn
from tests.telegram_server import TelegramServer


def replying(app: Ostinato, **options: Any) -> list[list[str]]:
    """A task that notes what it is called with."""
    heard: list[list[str]] = []

    @app.task("reply", retry=0, **options)
    def reply(payloads: list[str]) -> str:
        heard.append(payloads)
        return "I heard " + " and ".join(payloads)

    return heard


def test_a_text_goes_to_the_session_of_its_chat(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot(task="reply")
    heard = replying(app, debounce="0s")
    telegram.write(OPERATOR, "hello")
    telegram.write(GROUP, "@ostinato_test_bot hello, group", user=OPERATOR)
    telegram.wait_until(lambda: len(heard) == 2)
    assert sorted(heard) == [["hello"], ["hello, group"]]
    runs = {run.session: run for run in app.runs.list()}
    assert runs.keys() == {f"dm:{OPERATOR}", f"group:{GROUP}"}
    assert list(app.runs.get(runs[f"dm:{OPERATOR}"].id).work.kwargs) == ["payloads"]  # type: ignore[union-attr]
    assert app.sessions.get(f"dm:{OPERATOR}").max_concurrent == 1
    assert app.sessions.get(f"group:{GROUP}").max_concurrent == 3
    assert telegram.count("sendChatAction") >= 1


def test_the_settings_of_sessions_have_the_last_word(make_bot: MakeBot, telegram: TelegramServer) -> None:
    sessions = read_session_defaults({"group:*": {"max_concurrent": 7}, "dm:*": {"debounce": "0s"}})
    app = make_bot(task="reply", settings={"sessions": sessions})
    heard = replying(app)
    telegram.write(GROUP, "hello", user=OPERATOR)
    telegram.wait_until(lambda: heard)
    assert app.sessions.get(f"group:{GROUP}").max_concurrent == 7


def test_a_burst_is_one_run_and_the_same_update_twice_is_one_message(
    make_bot: MakeBot, telegram: TelegramServer
) -> None:
    app = make_bot(task="reply")
    heard = replying(app, debounce="700ms")
    telegram.write(OPERATOR, "one")
    telegram.fail("getUpdates", None, after_effect=True)
    telegram.write(OPERATOR, "two")
    telegram.wait_until(lambda: heard)
    assert [text for payloads in heard for text in payloads] == ["one", "two"]


def test_an_agent_answers_admins_alone_unless_the_settings_say_more(
    make_bot: MakeBot, telegram: TelegramServer, tmp_path: Path
) -> None:
    stand_in = StandIn(tmp_path / "agents")
    agents = {"claude": stand_in.cli}
    app = make_bot(agent={"cli": "claude", "model": "opus"}, settings={"agents": agents})
    telegram.write(OPERATOR, "delete everything")
    telegram.wait_for("writing here needs the role admin", OPERATOR)
    telegram.write(ADMIN, "look around")
    telegram.wait_until(lambda: [run for run in app.runs.list() if run.state == "succeeded"])
    (call,) = stand_in.calls
    assert call["prompt"].startswith("look around")
    assert "TEST_BOT_TOKEN" not in call["environment"]
    (run,) = app.runs.list()
    assert (run.session, run.result["text"]) == (f"dm:{ADMIN}", "message 1: look around")


def test_an_operator_may_write_to_the_agent_if_the_settings_say_so(
    make_bot: MakeBot, telegram: TelegramServer, tmp_path: Path
) -> None:
    agents = {"claude": StandIn(tmp_path / "agents").cli}
    app = make_bot(agent="claude", agent_role="operator", settings={"agents": agents})
    telegram.write(OPERATOR, "look around")
    telegram.wait_until(lambda: [run for run in app.runs.list() if run.state == "succeeded"])


def test_stop_ends_what_is_under_way_and_the_typing_sign(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot(task="wait")
    started = threading.Event()

    @app.task("wait", retry=0, debounce="0s")
    async def wait(payloads: list[str]) -> None:
        started.set()
        await asyncio.Event().wait()

    telegram.write(OPERATOR, "work")
    assert started.wait(60)
    telegram.wait_until(lambda: telegram.count("sendChatAction") >= 3)
    telegram.write(OPERATOR, "/stop")
    telegram.wait_for("Stopped.", OPERATOR)
    (run,) = app.runs.list()
    assert app.runs.wait(run.id, timeout=60).state == "cancelled"
    telegram.write(OPERATOR, "/stop")
    telegram.wait_for("Nothing is under way.", OPERATOR)
    shown = telegram.count("sendChatAction")
    telegram.write(OPERATOR, "/status")
    telegram.wait_for("this chat: 0 under way, 0 waiting", OPERATOR)
    assert telegram.count("sendChatAction") == shown


def test_a_stop_acts_on_what_is_still_being_collected(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot(task="reply")
    heard = replying(app, debounce="1h")
    telegram.write(OPERATOR, "one")
    telegram.wait_until(lambda: telegram.count("sendChatAction") >= 1)
    telegram.write(OPERATOR, "/stop")
    telegram.wait_for("Stopped.", OPERATOR)
    assert app.sessions.get(f"dm:{OPERATOR}").queued == 0
    telegram.write(OPERATOR, "two")
    telegram.write(OPERATOR, "/stopall")
    telegram.wait_for("Stopped 0, dropped 1.", OPERATOR)
    assert app.sessions.get(f"dm:{OPERATOR}").queued == 0
    assert heard == []


def test_the_typing_sign_is_shown_by_the_node_that_takes_over(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot(task="reply")
    replying(app, debounce="1h")
    telegram.wait_handled(telegram.write(OPERATOR, "one"))
    app.stop()
    shown = telegram.count("sendChatAction")
    app.start()
    telegram.wait_until(lambda: telegram.count("sendChatAction") > shown)


def test_what_is_no_text_is_told(make_bot: MakeBot, telegram: TelegramServer) -> None:
    make_bot(task="reply")
    telegram.write(OPERATOR, "", sticker=None)
    telegram.wait_for("I can only read text.", OPERATOR)


def test_each_chat_is_a_channel_and_what_was_set_for_one_stays(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    telegram.wait_until(lambda: telegram.count("getUpdates"))
    draft = ChannelDraft(f"telegram:{ADMIN}", f"telegram://{ADMIN}", quiet="22:00-07:00")
    app.with_engine(lambda engine: engine.store.notifications.put_channel(draft, 1))
    app.stop()
    app.start()
    telegram.wait_handled(telegram.write(ADMIN, "/status"))
    channels = app.with_engine(lambda engine: engine.store.notifications.list_channels())
    assert {channel.name: (channel.url, channel.quiet) for channel in channels} == {
        "telegram:42": ("telegram://42", "22:00-07:00"),
        "telegram:43": ("telegram://43", None),
        "telegram:44": ("telegram://44", None),
        "telegram:-1001": ("telegram://-1001", None),
    }


def said(telegram: TelegramServer) -> list[str]:
    return [one.text for one in telegram.said if one.chat == GROUP]


def test_the_talk_of_a_group_is_not_answered_unless_the_bot_is_addressed(
    make_bot: MakeBot, telegram: TelegramServer
) -> None:
    app = make_bot(task="reply")
    heard = replying(app, debounce="0s")
    telegram.write(GROUP, "shall we have lunch?", user=VIEWER)
    telegram.write(GROUP, "/weather", user=VIEWER)
    telegram.wait_handled(telegram.write(GROUP, "at noon", user=VIEWER))
    assert said(telegram) == []
    assert app.with_engine(lambda engine: engine.store.access.list_audit(AuditFilter(verb="denied"))) == []
    bot = {"id": 7, "is_bot": True, "first_name": "x", "username": "ostinato_test_bot"}
    answered = {"message_id": 1, "date": 1, "chat": {"id": GROUP, "type": "supergroup"}, "from": bot, "text": "…"}
    for number, (text, more) in enumerate(
        (("and you, @Ostinato_Test_Bot?", {}), ("why?", {"reply_to_message": answered})), 1
    ):
        telegram.write(GROUP, text, user=VIEWER, **more)
        telegram.wait_until(lambda number=number: len(said(telegram)) == number)  # type: ignore[misc]
    assert all("writing here needs the role operator" in text for text in said(telegram))
    telegram.write(GROUP, "/weather@ostinato_test_bot", user=VIEWER)
    telegram.wait_for("there is no such command", GROUP)
    telegram.write(GROUP, "to whom it may concern", user=OPERATOR)
    telegram.wait_until(lambda: heard == [["to whom it may concern"]])


def test_nobody_is_told_in_a_group_that_nobody_answers_texts(make_bot: MakeBot, telegram: TelegramServer) -> None:
    make_bot()
    telegram.wait_handled(telegram.write(GROUP, "hello", user=ADMIN))
    assert said(telegram) == []
    telegram.write(GROUP, "hello @ostinato_test_bot", user=ADMIN)
    telegram.wait_for("Nobody answers texts here", GROUP)
