"""Adding over a schedule that is there: nobody replaces what somebody else made, unless they ask for it."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import InvalidInput, Ostinato, ScheduleSpec, Shell
from ostinato.errors import Conflict
from ostinato.models.access import Actor
from ostinato.service.audit import acting
from ostinato.stores.sql.schedules import Schedules
from tests.doors.command_line import CommandLine
from tests.doors.web import Client, Web


def test_a_schedule_that_a_person_made_is_not_replaced_by_a_program_unless_it_asks(app: Ostinato) -> None:
    with acting(Actor("ada", "cli")):
        app.schedules.add("report", "daily 03:00", Shell("true"))
        app.schedules.add("report", "daily 04:00", Shell("true"))
    assert app.schedules.add("report", "daily 04:00", Shell("true")).version == 2, "it says the same"
    with pytest.raises(Conflict, match=r"'report' exists and was made by ada: it is not replaced; .* --replace"):
        app.schedules.add("report", "daily 05:00", Shell("true"))
    assert app.schedules.get("report").timing == "daily 04:00"
    app.schedules.edit("report", timing="daily 06:00")
    with acting(Actor("ada", "cli")):
        assert app.schedules.add("report", "daily 07:00", Shell("true")).timing == "daily 07:00", "it is still hers"
    assert app.schedules.add("report", "daily 05:00", Shell("true"), replace=True).timing == "daily 05:00"


def test_who_replaces_a_schedule_has_made_what_there_is_now(app: Ostinato) -> None:
    with acting(Actor("ada", "cli")):
        app.schedules.add("report", "daily 03:00", Shell("true"))
    with acting(Actor("bob", "cli")):
        app.schedules.add("report", "daily 04:00", Shell("true"), replace=True)
        app.schedules.add("report", "daily 05:00", Shell("true"))
    with acting(Actor("ada", "cli")), pytest.raises(Conflict, match="made by bob"):
        app.schedules.add("report", "daily 06:00", Shell("true"))


def test_what_has_an_owner_of_its_own_is_replaced_by_no_other(app: Ostinato) -> None:
    app.schedules.add("report", "daily 03:00", Shell("true"), owner="crontab:ada")
    with pytest.raises(Conflict, match="made by 'crontab:ada'"):
        app.schedules.add("report", "daily 04:00", Shell("true"))
    with acting(Actor("root", "cli")):
        again = app.schedules.add("report", "daily 04:00", Shell("true"), owner="crontab:ada")
    assert again.timing == "daily 04:00", "whoever brings it up to date"


def test_who_says_the_same_of_what_another_owns_does_not_come_to_own_it(app: Ostinato) -> None:
    app.schedules.add("report", "daily 03:00", Shell("true"), owner="crontab:ada")
    assert app.schedules.add("report", "daily 03:00", Shell("true")).owner == "crontab:ada"
    with pytest.raises(Conflict, match="made by 'crontab:ada'"):
        app.schedules.add("report", "daily 04:00", Shell("true"))
    assert app.schedules.add("report", "daily 03:00", Shell("true"), replace=True).owner == "user"


def test_many_replace_what_another_made_only_if_they_are_asked_to(app: Ostinato) -> None:
    with acting(Actor("ada", "cli")):
        app.schedules.add("report", "daily 03:00", Shell("true"))
    many = [ScheduleSpec(name, "daily 04:00", Shell("true")) for name in ("other", "report")]
    with pytest.raises(Conflict, match="made by ada"):
        app.schedules.add_many(many)
    assert [one.name for one in app.schedules.list()] == ["report"]
    assert app.schedules.add_many(many, replace=True) == 2
    assert app.schedules.get("report").timing == "daily 04:00"


def test_what_another_adds_meanwhile_is_not_replaced(app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    with acting(Actor("ada", "cli")):
        app.schedules.add("report", "daily 03:00", Shell("true"))

    async def nothing_yet(*_: Any) -> list[Any]:
        monkeypatch.undo()
        return []

    monkeypatch.setattr(Schedules, "list_schedules", nothing_yet)
    with pytest.raises(Conflict, match="made by ada"):
        app.schedules.add("report", "daily 04:00", Shell("true"))
    monkeypatch.undo()
    assert app.schedules.get("report").timing == "daily 03:00"


def test_one_that_is_added_if_it_is_new_does_not_replace_what_was_added_meanwhile(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.schedules.add("report", "daily 03:00", Shell("true"))

    async def nothing_yet(*_: Any) -> None:
        monkeypatch.undo()

    monkeypatch.setattr(Schedules, "get_schedule", nothing_yet)
    assert app.schedules.add("report", "daily 04:00", Shell("false"), if_new=True).timing == "daily 03:00"


def test_one_that_is_added_only_if_it_is_new_stays_as_it_is(app: Ostinato) -> None:
    added = app.schedules.add("report", "daily 03:00", Shell("true"), if_new=True)
    again = app.schedules.add("report", "daily 04:00", Shell("false"), if_new=True)
    assert (again.timing, again.version) == ("daily 03:00", added.version)


@pytest.mark.parametrize("other", [{"replace": True}, {"version": 7}, {"only_new": True}])
def test_what_contradicts_if_new_is_refused(app: Ostinato, other: Any) -> None:
    (name,) = other
    with pytest.raises(InvalidInput, match=f"either if_new or {name}, not both"):
        app.schedules.add("report", "daily 04:00", Shell("false"), if_new=True, **other)
    assert app.schedules.list() == []


def test_the_command_line_replaces_only_with_its_flag_and_never_if_new(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "report", "daily 03:00", "--shell", "true")
    stays = cli.ok("schedule", "add", "report", "daily 04:00", "--shell", "true", "--if-new").err
    assert "unchanged" in stays
    assert "changed" in cli.ok("schedule", "add", "report", "daily 04:00", "--shell", "true").err, "the same person"


def test_rest_replaces_what_another_made_only_with_replace(web: Web, admin: Client) -> None:
    body = {"name": "report", "timing": "daily 03:00", "work": {"kind": "shell", "command": "true"}}
    assert admin.post("/api/schedules", body).status_code == 201
    changed = {**body, "timing": "daily 04:00"}
    other = web.script("admin", "other")
    refused = other.post("/api/schedules", changed)
    assert refused.status_code == 409
    assert "it is not replaced" in refused.json()["detail"]
    assert other.post("/api/schedules", {**changed, "replace": True}).json()["timing"] == "daily 04:00"
