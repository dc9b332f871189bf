"""Two who change the same schedule: with a version the second learns it, without one both changes hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ostinato import Ostinato
from ostinato.errors import InvalidInput, VersionConflict
from tests.doors.web import Web, web_on


@pytest.fixture
def web(url: str) -> Iterator[Web]:
    with web_on(url=url) as web:
        yield web


def test_an_edit_with_an_old_version_changes_nothing_and_tells_the_new_one(app: Ostinato) -> None:
    app.schedules.add("a", "every 5m", "hello")
    assert app.schedules.edit("a", note="one", version=1).version == 2
    with pytest.raises(VersionConflict) as caught:
        app.schedules.edit("a", note="two", version=1)
    assert (caught.value.version, app.schedules.get("a").note) == (2, "one")


def test_edits_at_the_same_time_all_hold(web: Web) -> None:
    schedules = web.container.services.schedules

    async def together() -> None:
        await schedules.add("a", "every 5m", "hello")
        await asyncio.gather(
            schedules.edit("a", note="why"),
            schedules.edit("a", priority=3),
            schedules.edit("a", timing="every 6m"),
            schedules.disable("a"),
        )

    web.run(together())
    found = web.run(schedules.get("a"))
    assert (found.note, found.policy.priority, found.timing, found.enabled) == ("why", 3, "every 6m", False)


def test_of_edits_with_the_same_version_at_the_same_time_one_is_done(web: Web) -> None:
    schedules = web.container.services.schedules

    async def together() -> list[object]:
        await schedules.add("a", "every 5m", "hello")
        edits = [schedules.edit("a", note=str(number), version=1) for number in range(5)]
        return [*await asyncio.gather(*edits, return_exceptions=True)]

    answers = web.run(together())
    refused = [answer for answer in answers if isinstance(answer, VersionConflict)]
    assert len(refused) == 4
    assert web.run(schedules.get("a")).version == 2


def test_an_empty_note_clears_it_and_doing_so_twice_changes_nothing(app: Ostinato) -> None:
    app.schedules.add("a", "every 5m", "hello", note="why")
    cleared = app.schedules.edit("a", note="")
    assert not cleared.note
    assert app.schedules.edit("a", note="").version == cleared.version


def test_an_add_is_done_only_for_what_it_asks(app: Ostinato) -> None:
    made = app.schedules.add("a", "every 5m", "hello", only_new=True)
    with pytest.raises(VersionConflict, match="already") as caught:
        app.schedules.add("a", "every 9m", "hello", only_new=True)
    assert caught.value.version == made.version == 1
    assert app.schedules.add("a", "every 6m", "hello", version=1).version == 2
    with pytest.raises(VersionConflict, match="somebody else"):
        app.schedules.add("a", "every 7m", "hello", version=1)
    with pytest.raises(VersionConflict):
        app.schedules.add("b", "every 7m", "hello", version=1)
    with pytest.raises(InvalidInput, match="not both"):
        app.schedules.add("a", "every 7m", "hello", version=2, only_new=True)
    assert [(found.name, found.timing) for found in app.schedules.list()] == [("a", "every 6m")]


def test_runs_are_not_listed_by_what_nobody_knows(app: Ostinato) -> None:
    with pytest.raises(TypeError, match="statee"):
        app.runs.list(statee="queued")  # type: ignore[call-arg]
