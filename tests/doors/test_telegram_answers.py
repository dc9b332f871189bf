"""What comes back into a chat by itself: answers in parts, and failures with buttons under them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato import Ostinato, Shell
from ostinato.models.access import Role
from ostinato.models.ids import RunId
from ostinato.models.notification import ChannelDraft, DeliveryFilter, DeliveryState, NoticeKind
from ostinato.models.telegram import TelegramSettings
from ostinato.notifications.base import SendError
from ostinato.notifications.telegram import TelegramSender, buttons_of
from ostinato.notifications.text import Message
from tests.doors.telegram_bot import ADMIN, OPERATOR, MakeBot
from tests.engine.stand_in import StandIn
from tests.telegram_server import TOKEN, TelegramServer

VARIABLE = "TEST_BOT_TOKEN"
LEFT = ChannelDraft(f"telegram:{ADMIN}", f"telegram://{ADMIN}")
"""As the bot made it, when that chat was on the list."""


def sent(app: Ostinato) -> int:
    """How many deliveries are through."""
    wanted = DeliveryFilter(state=DeliveryState.SENT)
    return len(app.with_engine(lambda engine: engine.store.notifications.list_deliveries(wanted)))


def long_answer(app: Ostinato) -> list[str]:
    """A task whose answer is three messages long."""
    lines = [f"line {number:04} of an answer" for number in range(400)]

    @app.task("reply", retry=0, debounce="0s")
    def reply(payloads: list[str]) -> str:
        return "\n".join(lines)

    return lines


def test_the_answer_of_a_task_comes_back_in_parts(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot(task="reply")
    lines = long_answer(app)
    telegram.write(OPERATOR, "tell me all")
    telegram.wait_for("line 0399", OPERATOR)
    assert [line for one in telegram.said for line in one.text.split("\n")] == lines
    assert len(telegram.said) == 3
    telegram.wait_until(lambda: sent(app) == 1)


@pytest.mark.parametrize("status", [None, 429, 500])
def test_a_part_that_is_refused_is_sent_again_and_no_other(
    make_bot: MakeBot, telegram: TelegramServer, status: int | None
) -> None:
    app = make_bot(task="reply")
    lines = long_answer(app)
    telegram.write(OPERATOR, "/help")
    telegram.wait_for("/schedule list")
    telegram.said.clear()
    telegram.fail("sendMessage", status, after=1, retry_after=1 if status == 429 else None)
    telegram.write(OPERATOR, "tell me all")
    telegram.wait_for("line 0399", OPERATOR)
    assert [line for one in telegram.said for line in one.text.split("\n")] == lines
    telegram.wait_until(lambda: sent(app) == 1)


def test_the_answer_of_an_agent_comes_back(make_bot: MakeBot, telegram: TelegramServer, tmp_path: Path) -> None:
    agents = {"claude": StandIn(tmp_path / "agents").cli}
    make_bot(agent="claude", settings={"agents": agents})
    telegram.write(ADMIN, "look around")
    telegram.wait_for("message 1: look around", ADMIN)
    telegram.write(ADMIN, "and again")
    telegram.wait_for("message 2: and again", ADMIN)


def test_a_text_whose_run_fails_is_answered_with_why(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot(task="reply")

    @app.task("reply", retry=0, debounce="0s")
    def reply(payloads: list[str]) -> str:
        raise ValueError("I cannot")

    telegram.write(OPERATOR, "do it")
    telegram.wait_for("It failed: ValueError: I cannot", OPERATOR)


def test_a_failure_has_buttons_that_work(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("bad", "0 9 1 1 *", Shell("echo ouch; exit 3"), retry=0, notify=[f"telegram:{OPERATOR}"])
    run = app.schedules.trigger("bad")
    failed = telegram.wait_for("bad failed", OPERATOR)
    assert "ouch" in failed.text
    assert failed.buttons == {
        "Run again": f"again:{run.id}",
        "Why": f"why:{run.id}",
        "Pause": f"off:{run.id}",
        "Show output": f"output:{run.id}",
    }
    telegram.press(OPERATOR, failed.buttons["Show output"], message=failed.id)
    telegram.wait_until(lambda: [one for one in telegram.said if one.text.strip() == "ouch"])
    telegram.press(OPERATOR, failed.buttons["Pause"], message=failed.id)
    telegram.wait_for("bad is off", OPERATOR)


def test_a_schedule_added_in_a_chat_answers_there(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    telegram.write(ADMIN, '/schedule add --type shell --name hello "0 9 1 1 *" echo hi')
    telegram.wait_for("Added.", ADMIN)
    app.schedules.trigger("hello")
    telegram.wait_for("hello succeeded", ADMIN)


def test_a_chat_that_is_not_on_the_list_any_more_is_told_nothing(make_bot: MakeBot, telegram: TelegramServer) -> None:
    """Neither by a rule, nor by a schedule, nor under another name."""
    app = make_bot(chats={OPERATOR: "operator"})
    app.notifications.add("phone", f"telegram://{ADMIN}")
    app.with_engine(lambda engine: engine.store.notifications.put_channel(LEFT, engine.clock.now()))
    for name in ("phone", LEFT.name, f"telegram:{OPERATOR}"):
        app.notifications.add_rule(name)
    app.schedules.add("bad", "0 9 1 1 *", Shell("exit 3"), retry=0, notify=[LEFT.name])
    app.schedules.trigger("bad")
    telegram.wait_for("bad failed", OPERATOR)
    telegram.wait_until(lambda: all(one.state not in ("pending", "sending") for one in app.notifications.log()))
    assert {one.channel: (one.state, one.error) for one in app.notifications.log()} == {
        "phone": ("dropped", "its chat is not on the list of [telegram] chats"),
        LEFT.name: ("dropped", "its chat is not on the list of [telegram] chats"),
        f"telegram:{OPERATOR}": ("sent", None),
    }
    assert {one.chat for one in telegram.said} == {OPERATOR}
    assert app.notifications.test("phone").state == "dropped"


@pytest.mark.parametrize(
    ("kind", "run", "schedule", "buttons"),
    [
        (NoticeKind.FAILED, 7, "job", ["again:7", "why:7", "off:7", "output:7"]),
        (NoticeKind.FAILED, 7, None, ["again:7", "output:7"]),
        (NoticeKind.BROKEN, 7, "job", ["again:7", "why:7", "output:7"]),
        (NoticeKind.MISSED, 7, "job", ["again:=job", "why:=job", "off:=job"]),
        (NoticeKind.LATE, None, "job", ["again:=job", "why:=job", "off:=job"]),
        (NoticeKind.LATE, None, "ü" * 30, []),
        (NoticeKind.LATE, None, "j" * 58, ["why:=" + "j" * 58, "off:=" + "j" * 58]),
        (NoticeKind.SUCCEEDED, 7, "job", []),
        (NoticeKind.ANSWER, 7, None, []),
        (NoticeKind.RECOVERED, 7, "job", []),
    ],
)
def test_a_failure_has_the_buttons_that_make_sense(
    kind: NoticeKind, run: int | None, schedule: str | None, buttons: list[str]
) -> None:
    message = Message("title", "body", "key", kind, None if run is None else RunId(run), schedule)
    assert [button.data for row in buttons_of(message) for button in row] == buttons


@pytest.mark.parametrize(
    ("url", "token", "says"),
    [
        ("telegram://42", f"env:{VARIABLE}", None),
        ("telegram://ada", f"env:{VARIABLE}", "names no chat"),
        ("telegram://42", "env:WRONG_TOKEN", "does not know the bot's token"),
        ("telegram://42", "env:NO_TOKEN", "environment has no NO_TOKEN"),
        ("telegram://42", None, "this node has no Telegram bot"),
        ("telegram://43", f"env:{VARIABLE}", "not on the list"),
    ],
)
async def test_a_channel_is_checked_without_a_message(
    telegram: TelegramServer, monkeypatch: pytest.MonkeyPatch, url: str, token: str | None, says: str | None
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    monkeypatch.setenv("WRONG_TOKEN", f"{TOKEN}x")
    sender = TelegramSender(TelegramSettings(token, {42: Role.ADMIN}, telegram.url))
    if says is None:
        await sender.check(url)
    else:
        with pytest.raises(SendError, match=says) as caught:
            await sender.check(url)
        assert TOKEN not in str(caught.value)
    assert telegram.said == []
