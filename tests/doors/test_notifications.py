"""Channels, rules and incidents by the Python API: what is checked, kept, refused and hidden."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ostinato import Every, Ostinato, RunState
from ostinato.errors import Conflict, InvalidInput, NotFound, TimingError
from ostinato.testing import drain

URL = "json://user:secret@example.org/token"


def test_a_channel_is_added_once_and_its_url_is_never_shown(app: Ostinato) -> None:
    added = app.notifications.add("phone", URL, note="Ann's", quiet="22:00-7:00", digest="daily 08:00", cool_down="1h")
    assert (added.name, added.url, added.note) == ("phone", "json://***@example.org/***", "Ann's")
    assert (added.quiet, added.digest, added.cool_down, added.zone) == ("22:00-07:00", "daily 08:00", "1h", "UTC")
    assert (added.failures, added.error, added.retry_at, added.sent_at) == (0, None, None, None)
    assert app.notifications.add("phone", URL) == added
    assert app.notifications.list() == [added] == [app.notifications.get("phone")]


def test_a_channel_that_is_added_again_says_what_waits_for_it(app: Ostinato) -> None:
    app.notifications.add("phone", URL, digest="daily 08:00")
    app.notifications.add_rule("phone")

    @app.task(retry=0)
    def job() -> None:
        raise ValueError("boom")

    job.enqueue()
    drain(app)
    assert app.notifications.add("phone").waiting == app.notifications.get("phone").waiting == 1


def test_what_is_not_given_of_a_channel_stays_and_none_takes_it_away(app: Ostinato) -> None:
    app.notifications.add("phone", URL, note="Ann's", quiet="22:00-07:00", tz="Europe/Berlin")
    changed = app.notifications.add("phone", quiet="none", cool_down=timedelta(minutes=5))
    assert (changed.quiet, changed.note, changed.zone, changed.cool_down) == (None, "Ann's", "Europe/Berlin", "5m")
    assert app.notifications.add("phone", note="").note is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": "my phone", "url": URL}, "name"),
        ({"name": "phone", "url": "example.org"}, "url"),
        ({"name": "phone"}, "url"),
        ({"name": "phone", "url": URL, "quiet": "at night"}, "quiet"),
        ({"name": "phone", "url": URL, "cool_down": "soon"}, "cool_down"),
        ({"name": "phone", "url": URL, "cool_down": "60d"}, "cool_down"),
    ],
)
def test_a_wrong_channel_is_refused_at_its_field(app: Ostinato, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        app.notifications.add(**given)
    assert error.value.field == field
    assert "secret" not in str(error.value)
    assert app.notifications.list() == []


@pytest.mark.parametrize(
    "given", [{"digest": "daily at eight"}, {"digest": "at 2020-01-01T00:00"}, {"tz": "Mars/Olympus"}]
)
def test_a_digest_that_never_comes_and_a_zone_that_is_not_there_are_refused(
    app: Ostinato, given: dict[str, str]
) -> None:
    with pytest.raises(TimingError):
        app.notifications.add("phone", URL, **given)


def test_an_unknown_channel_is_refused_where_it_is_named_and_the_known_ones_are_listed(app: Ostinato) -> None:
    app.notifications.add("ops", URL)
    app.task("job")(lambda payloads=None: None)
    named: list[Any] = [
        lambda: app.schedules.add("a", "every 5m", "job", notify=["phone"]),
        lambda: app.enqueue("job", notify=["ops", "phone=failed"]),
        lambda: app.sessions.send("chat", "hi", task="job", notify=["phone"]),
        lambda: app.notifications.add_rule("phone"),
    ]
    for name in named:
        with pytest.raises(InvalidInput, match="there is no channel 'phone'") as error:
            name()
        assert "the channels are ops" in str(error.value)
    assert app.schedules.list() == []
    app.notifications.add("phone", URL)
    for name in named:
        name()


@pytest.mark.parametrize("entry", ["ops=never", "=failed", "my phone", "ops="])
def test_a_notify_that_cannot_be_read_is_refused(app: Ostinato, entry: str) -> None:
    app.notifications.add("ops", URL)
    with pytest.raises(InvalidInput) as error:
        app.schedules.add("a", "every 5m", "job", notify=[entry])
    assert error.value.field == "notify"


def test_work_of_the_code_is_taken_though_nobody_is_told_there(app: Ostinato, caplog: pytest.LogCaptureFixture) -> None:
    @app.task(schedule=Every(minutes=5), notify=["phone"])
    def declared() -> None: ...

    @app.task(notify=["pager"])
    def told() -> None: ...

    with caplog.at_level(logging.WARNING, "ostinato"):
        runs = [told.enqueue(), told.enqueue()]
        drain(app)
    assert [run.get().state for run in runs] == [RunState.SUCCEEDED] * 2
    assert app.schedules.get("declared").policy.notify == ("phone",)
    warned = [record.getMessage() for record in caplog.records if "there is no channel" in record.getMessage()]
    assert len(warned) == 2
    assert all("ostinato notify add" in text for text in warned)


def test_a_channel_that_schedules_name_is_removed_only_by_force(app: Ostinato) -> None:
    app.notifications.add("phone", URL)
    app.notifications.add_rule("phone", "failed")
    app.schedules.add("a", "every 5m", "job", notify=["phone=failed"])
    with pytest.raises(Conflict, match="schedules notify channel 'phone': a;"):
        app.notifications.remove("phone")
    removed = app.notifications.remove("phone", force=True)
    assert (removed.rules, removed.schedules) == (1, ["a"])
    assert app.notifications.rules() == []
    # Who changes something else of it is not asked about the channel.
    assert app.schedules.edit("a", note="still here").policy.notify == ("phone=failed",)
    with pytest.raises(InvalidInput):
        app.schedules.edit("a", notify=["phone"])
    with pytest.raises(NotFound):
        app.notifications.remove("phone")


def test_a_rule_is_of_a_project_or_of_all_and_replaces_the_one_before(app: Ostinato, tmp_path: Path) -> None:
    app.notifications.add("ops", URL)
    app.projects.add("blog", tmp_path)
    every = app.notifications.add_rule("ops")
    assert (every.on, every.project) == (["failed", "broken", "recovered", "missed", "late"], None)
    of_blog = app.notifications.add_rule("ops", "failed,broken", project="blog")
    again = app.notifications.add_rule("ops", ["succeeded"], project="blog")
    assert (of_blog.id, of_blog.on, again.on) == (again.id, ["failed", "broken"], ["succeeded"])
    assert app.notifications.rules("ops") == app.notifications.rules() == [every, again]
    app.notifications.remove_rule(every.id)
    with pytest.raises(NotFound, match=f"there is no rule {every.id}"):
        app.notifications.remove_rule(every.id)


def test_a_rule_with_a_digest_alone_tells_nothing_else(app: Ostinato) -> None:
    app.notifications.add("ops", URL)
    rule = app.notifications.add_rule("ops", digest="daily 08:00", tz="Europe/Berlin")
    assert (rule.on, rule.digest, rule.zone) == ([], "daily 08:00", "Europe/Berlin")
    assert rule.digest_at is not None
    assert app.notifications.add_rule("ops", "failed", digest="daily 08:00").on == ["failed"]


@pytest.mark.parametrize("on", ["", "never", "failed,never", "answer"])
def test_a_rule_of_a_kind_that_there_is_not_is_refused(app: Ostinato, on: str) -> None:
    app.notifications.add("ops", URL)
    with pytest.raises(InvalidInput) as error:
        app.notifications.add_rule("ops", on)
    assert error.value.field == "on"


def test_a_rule_of_an_unknown_project_is_refused(app: Ostinato) -> None:
    app.notifications.add("ops", URL)
    with pytest.raises(NotFound, match="there is no project 'blog'"):
        app.notifications.add_rule("ops", project="blog")


def test_incidents_that_do_not_exist_are_not_found(app: Ostinato) -> None:
    assert app.incidents.list() == []
    for verb in (app.incidents.get, app.incidents.look, app.incidents.ack, app.incidents.rerun):
        with pytest.raises(NotFound, match="there is no incident 7"):
            verb(7)
