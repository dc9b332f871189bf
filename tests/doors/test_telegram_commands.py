"""Commands and buttons of the Telegram bot, against a local server that speaks the Bot API."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ostinato import Agent, Http, Ostinato, Shell
from ostinato.models.access import AuditFilter
from ostinato.tuning import Tuning
from tests.doors.telegram_bot import ADMIN, GROUP, OPERATOR, VIEWER, MakeBot
from tests.telegram_server import TelegramServer


def audit(app: Ostinato, **wanted: Any) -> list[tuple[str, str, str]]:
    """The audit log, the newest first."""
    found = app.with_engine(lambda engine: engine.store.access.list_audit(AuditFilter(**wanted)))
    return [(entry.who, entry.verb, entry.object) for entry in found]


def test_help_says_who_one_is(make_bot: MakeBot, telegram: TelegramServer) -> None:
    make_bot()
    telegram.write(ADMIN, "/start")
    said = telegram.wait_for("/schedule list", ADMIN)
    assert f"You are telegram:{ADMIN}, with the role admin." in said.text


def test_a_schedule_is_added_shown_run_switched_and_deleted(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    telegram.write(ADMIN, '/schedule add --type shell --once "0 9 * * *" echo Good  morning')
    added = telegram.wait_for("Added.")
    assert "echo-good-morning: on" in added.text
    schedule = app.schedules.get("echo-good-morning")
    assert schedule.work == Shell("echo Good  morning")
    assert list(schedule.policy.notify) == [f"telegram:{ADMIN}"]
    assert schedule.remaining == 1

    telegram.write(ADMIN, "/schedule list")
    telegram.wait_for(f"{schedule.id}. echo-good-morning: on, next ")
    telegram.write(ADMIN, f"/schedule get {schedule.id}")
    telegram.wait_for("shell: echo Good morning")
    telegram.write(ADMIN, "/schedule disable echo-good-morning")
    telegram.wait_for("echo-good-morning is off")
    assert not app.schedules.get("echo-good-morning").enabled
    telegram.write(ADMIN, "/schedule list")
    telegram.wait_for("No schedule is on")
    telegram.write(ADMIN, f"/schedule enable {schedule.id}")
    telegram.wait_until(lambda: app.schedules.get("echo-good-morning").enabled)

    telegram.write(ADMIN, f"/schedule delete {schedule.id}")
    question = telegram.wait_for("Delete echo-good-morning with all its runs?")
    assert set(question.buttons) == {"Delete", "Keep"}
    telegram.press(ADMIN, question.buttons["Delete"], message=question.id)
    gone = telegram.wait_for("echo-good-morning is deleted")
    assert (gone.is_edit, gone.id) == (True, question.id)
    assert app.schedules.list() == []
    verbs = [verb for _, verb, _ in audit(app, who=f"telegram:{ADMIN}", door="telegram")]
    assert verbs == ["schedule.remove", "schedule.enable", "schedule.disable", "schedule.add"]


def test_keep_keeps_it(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("kept", "0 9 * * *", Shell("true"))
    telegram.write(ADMIN, "/schedule delete kept")
    question = telegram.wait_for("Delete kept")
    telegram.press(ADMIN, question.buttons["Keep"], message=question.id)
    telegram.wait_for("Nothing was deleted")
    assert app.schedules.get("kept").enabled


def test_a_question_about_what_has_changed_since_deletes_nothing(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("changed", "0 9 * * *", Shell("true"))
    telegram.write(ADMIN, "/schedule delete changed")
    question = telegram.wait_for("Delete changed")
    app.schedules.edit("changed", note="I need it")
    telegram.press(ADMIN, question.buttons["Delete"], message=question.id)
    telegram.wait_for("was changed by somebody else")
    assert app.schedules.get("changed").note == "I need it"


def test_it_is_run_and_its_runs_are_listed(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("hello", "0 9 1 1 *", Shell("echo hello"))
    telegram.write(OPERATOR, "/schedule run hello")
    telegram.wait_for("hello: run ")
    (run,) = app.runs.list(schedule="hello")
    app.runs.wait(run.id, timeout=60)
    telegram.write(VIEWER, "/schedule runs hello")
    telegram.wait_for(f"run {run.id}: succeeded", VIEWER)
    telegram.write(VIEWER, "/why hello")
    telegram.wait_for("It ran", VIEWER)
    telegram.write(VIEWER, "/status")
    assert "1 schedule: 1 on, 0 off, 0 broken" in telegram.wait_for("1 node alive", VIEWER).text


def test_a_run_is_cancelled(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("long", "0 9 1 1 *", Shell("sleep 600"))
    run = app.schedules.trigger("long")
    telegram.wait_until(lambda: app.runs.get(run.id).state == "running")
    telegram.write(OPERATOR, f"/cancel {run.id}")
    telegram.wait_for(f"run {run.id} ")
    assert app.runs.wait(run.id, timeout=60).reason == f"cancelled by telegram:{OPERATOR}"


def test_a_project_is_set_and_taken_away(make_bot: MakeBot, telegram: TelegramServer, tmp_path: Any) -> None:
    app = make_bot()
    app.projects.add("shop", tmp_path)
    app.schedules.add("job", "0 9 1 1 *", Shell("true"))
    telegram.write(ADMIN, "/schedule set job project shop")
    telegram.wait_for("job is in project shop")
    assert app.schedules.get("job").project == "shop"
    telegram.write(OPERATOR, "/schedule set job project none")
    telegram.wait_for("changing the project of a schedule with shell work needs the role admin")
    telegram.write(ADMIN, "/schedule set job project none")
    telegram.wait_for("job is in no project")
    assert app.schedules.get("job").project is None


@pytest.mark.parametrize(
    ("chat", "text", "needed"),
    [
        (VIEWER, "/schedule run job", "operator"),
        (VIEWER, "/schedule disable job", "operator"),
        (VIEWER, "/schedule delete job", "operator"),
        (VIEWER, "/cancel 1", "operator"),
        (VIEWER, "/stopall", "operator"),
        (VIEWER, "hello", "operator"),
        (OPERATOR, '/schedule add --type shell "@daily" rm -rf /', "admin"),
        (OPERATOR, '/schedule add "@daily" do what I say', "admin"),
    ],
)
def test_each_role_may_what_it_may_at_the_other_doors(
    make_bot: MakeBot, telegram: TelegramServer, chat: int, text: str, needed: str
) -> None:
    app = make_bot(task="reply")
    app.schedules.add("job", "0 9 1 1 *", Shell("true"))
    telegram.write(chat, text)
    telegram.wait_for(f"needs the role {needed}", chat)
    assert [schedule.name for schedule in app.schedules.list()] == ["job"]
    assert app.runs.list() == []
    assert app.schedules.get("job").enabled
    (denied,) = audit(app, who=f"telegram:{chat}", verb="denied")
    assert denied[2] == text


def test_the_buttons_of_a_failure_do_what_they_say(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("bad", "0 9 1 1 *", Shell("echo ouch; exit 3"), retry=0)
    run = app.runs.wait(app.schedules.trigger("bad").id, timeout=60)
    telegram.press(VIEWER, f"output:{run.id}")
    telegram.wait_for("ouch", VIEWER)
    telegram.press(VIEWER, f"why:{run.id}")
    telegram.wait_for("It ran and failed", VIEWER)
    telegram.press(VIEWER, f"off:{run.id}")
    telegram.wait_for("needs the role operator", VIEWER)
    telegram.press(OPERATOR, "off:=bad")
    telegram.wait_for("bad is off", OPERATOR)
    telegram.press(OPERATOR, f"again:{run.id}")
    telegram.wait_for("bad: run ", OPERATOR)
    assert len(app.runs.list(schedule="bad")) == 2
    assert telegram.count("answerCallbackQuery") == 5


@pytest.mark.parametrize(
    "data", ["", "x", "again:", "again:1e9", "delete:5", "delete:a.b", "again:99999999999999999999"]
)
def test_a_forged_button_does_nothing(make_bot: MakeBot, telegram: TelegramServer, data: str) -> None:
    app = make_bot()
    telegram.wait_handled(telegram.press(ADMIN, data))
    assert app.runs.list() == []
    telegram.wait_for("button")


def test_a_stranger_gets_no_answer_and_an_entry_once_an_hour(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("job", "0 9 1 1 *", Shell("true"))
    telegram.write(666, "/schedule run job")
    telegram.edit(666, "/schedule run job")
    telegram.press(666, "off:=job")
    telegram.write(-999, "/status", user=ADMIN)
    telegram.press(-999, "off:=job", user=ADMIN)
    # Somebody else in the private chat of an admin: Telegram never says so, and it would be a forgery.
    last = telegram.write(ADMIN, "/schedule run job", user=667)
    telegram.wait_handled(last)
    assert telegram.said == []
    assert telegram.count("answerCallbackQuery") == 0
    assert app.runs.list() == []
    assert audit(app, verb="denied") == [
        ("telegram:667", "denied", f"message of @user667 in chat {ADMIN}"),
        (f"telegram:{ADMIN}", "denied", f"message of @user{ADMIN} in chat -999"),
        ("telegram:666", "denied", "message of @user666 in chat 666"),
    ]


def test_an_edit_is_no_second_message_and_a_forward_no_command(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot(task="reply")
    heard: list[Any] = []

    @app.task("reply", debounce="0s")
    def reply(payloads: list[str]) -> None:
        heard.extend(payloads)

    app.schedules.add("job", "0 9 1 1 *", Shell("true"))
    telegram.edit(ADMIN, "/schedule run job")
    origin = {"type": "user", "date": 1, "sender_user": {"id": 666, "is_bot": False, "first_name": "Eve"}}
    telegram.write(ADMIN, "/schedule run job", forward_origin=origin)
    telegram.wait_until(lambda: heard)
    assert heard == ["/schedule run job"]
    assert app.runs.list(schedule="job") == []


def test_in_a_group_its_role_counts_or_that_of_the_person(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("job", "0 9 1 1 *", Shell("true"))
    telegram.write(GROUP, "/schedule disable job", user=777)
    telegram.wait_for("'telegram:777' has the role viewer", GROUP)
    telegram.press(GROUP, "off:=job", user=777)
    telegram.wait_until(lambda: sum("has the role viewer" in one.text for one in telegram.said) == 2)
    assert app.schedules.get("job").enabled
    telegram.write(GROUP, "/schedule@ostinato_test_bot disable job", user=OPERATOR)
    telegram.wait_for("job is off", GROUP)
    telegram.wait_handled(telegram.write(GROUP, "/schedule@other_bot delete job", user=OPERATOR))
    assert len(telegram.said) == 3


def test_what_is_wrong_is_told_with_what_is_right(make_bot: MakeBot, telegram: TelegramServer) -> None:
    make_bot()
    for text, says in [
        ("/nonsense", "/help lists them"),
        ("/schedule", "/help lists them"),
        ("/schedule get nothing", "there is no schedule 'nothing'"),
        ("/schedule run", "which schedule?"),
        ('/schedule add "61 * * * *" say hello', "61"),
        ("/schedule add * * * * * say hello", "a timing in quotes"),
        ("/cancel it", "the number of a run"),
        ("/cancel 999", "there is no run 999"),
        ("hello", "Nobody answers texts here"),
    ]:
        telegram.write(ADMIN, text)
        telegram.wait_for(says)


def test_the_same_update_twice_is_done_once(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("job", "0 9 1 1 *", Shell("true"), overlap="allow")
    update = telegram.write(ADMIN, "/schedule run job")
    telegram.wait_for("job: run ")
    app.stop()
    telegram.again(
        update,
        {
            "message": {
                "message_id": 1,
                "date": 1,
                "chat": {"id": ADMIN, "type": "private"},
                "from": {"id": ADMIN, "is_bot": False, "first_name": "Ada"},
                "text": "/schedule run job",
            }
        },
    )
    app.start()
    telegram.wait_until(lambda: len(telegram.said) == 2)
    assert telegram.said[0].text == telegram.said[1].text
    assert len(app.runs.list(schedule="job")) == 1


def test_a_schedule_for_an_agent_has_the_agent_of_the_settings_and_a_name_of_its_own(
    make_bot: MakeBot, telegram: TelegramServer
) -> None:
    app = make_bot(agent={"cli": "codex", "model": "large", "context": "isolated"})
    for _ in range(2):
        telegram.write(ADMIN, "/schedule add “daily 09:00” Summarise the issues")
    telegram.wait_for("summarise-the-issues-2", ADMIN)
    wanted = Agent("Summarise the issues", cli="codex", model="large")
    assert {one.name: one.work for one in app.schedules.list()} == {
        "summarise-the-issues": wanted,
        "summarise-the-issues-2": wanted,
    }
    telegram.write(ADMIN, '/schedule add --name summarise-the-issues "@daily" x')
    telegram.wait_for("already exists", ADMIN)


def test_a_command_that_takes_long_holds_up_no_other(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot(settings={"tuning": Tuning(telegram_command_seconds=0.1)})
    released = threading.Event()

    @app.check("slow")
    def slow() -> None:
        assert released.wait(60)

    app.schedules.add("job", "0 9 1 1 *", Shell("true"), checks=["slow"], enabled=False)
    telegram.write(ADMIN, "/schedule enable job")
    telegram.write(ADMIN, "/help")
    telegram.wait_for("You are telegram:42", ADMIN)
    assert not app.schedules.get("job").enabled
    released.set()
    telegram.wait_for("job: on", ADMIN)


def test_an_address_with_a_secret_is_not_shown(make_bot: MakeBot, telegram: TelegramServer) -> None:
    app = make_bot()
    app.schedules.add("hook", "0 9 1 1 *", Http("GET", "https://example.org/?token=secret"))
    telegram.write(VIEWER, "/schedule get hook")
    assert "secret" not in telegram.wait_for("http work", VIEWER).text
