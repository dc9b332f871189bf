"""/api/timings/preview: what a timing means, while somebody types it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from ostinato.errors import InvalidInput
from tests.doors.command_line import CommandLine
from tests.doors.web import Client, Web

PREVIEW = "/api/timings/preview"


@pytest.fixture
def viewer(web: Web) -> Client:
    return web.script("viewer")


def test_a_text_is_explained_with_its_next_times(viewer: Client) -> None:
    answer = viewer.get(PREVIEW, params={"text": "weekly  MON 9:00", "zone": "europe/berlin", "n": "2"})
    assert answer.status_code == 200
    assert answer.json() == {
        "text": "weekly mon 09:00",
        "zone": "Europe/Berlin",
        "sentence": "At 09:00 on Monday (Europe/Berlin).",
        "next": ["2026-01-05T08:00:00Z", "2026-01-12T08:00:00Z"],
        "remarks": [],
    }


def test_what_a_clock_change_does_is_remarked(viewer: Client) -> None:
    query = {"text": "daily 02:30", "zone": "Europe/Berlin", "after": "2026-03-28T12:00:00Z", "n": "1"}
    (remark,) = viewer.get(PREVIEW, params=query).json()["remarks"]
    assert remark.startswith("On 2026-03-29 02:30 does not exist in Europe/Berlin")


def test_without_a_zone_it_is_that_of_the_settings(viewer: Client) -> None:
    assert viewer.get(PREVIEW, params={"text": "daily 03:00"}).json()["zone"] == "UTC"


@pytest.mark.parametrize(
    ("query", "field", "position"),
    [
        ({"text": "every 5x"}, "text", 7),
        ({"text": ""}, "text", 0),
        ({"text": "30 9 31 2 *"}, "text", 5),
        ({"text": "daily 03:00", "zone": "Europe/Berln"}, "zone", 0),
    ],
)
def test_a_wrong_one_says_where_and_shows_a_right_one(
    viewer: Client, query: dict[str, str], field: str, position: int
) -> None:
    answer = viewer.get(PREVIEW, params=query)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["field"], error["position"]) == (field, position)
    # Of 'every 5x' nobody knows what was meant.
    assert bool(error["hint"]) == (position == 5 or field == "zone")


@pytest.mark.parametrize("query", [{}, {"text": "daily 03:00", "n": "0"}, {"text": "daily 03:00", "after": "now"}])
def test_a_query_that_nobody_understands_is_refused(viewer: Client, query: dict[str, str]) -> None:
    assert viewer.get(PREVIEW, params=query).status_code == 422


def test_a_body_means_the_same_as_a_query(viewer: Client) -> None:
    asked = {"text": "daily 03:00", "zone": "Europe/Berlin"}
    by_body = viewer.post(PREVIEW, asked)
    assert by_body.status_code == 200
    assert by_body.json() == viewer.get(PREVIEW, params=asked).json()
    assert [error["field"] for error in viewer.post(PREVIEW, {}).json()["errors"]] == ["text"]


@pytest.mark.parametrize("after", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("text", ["daily 03:00", "every 5m", "@yearly", "every 1w except 12-25", "at 2026-01-01T00:00"])
def test_the_ends_of_the_calendar_are_no_trouble(viewer: Client, text: str, after: str) -> None:
    answer = viewer.get(PREVIEW, params={"text": text, "after": after, "zone": "America/New_York"})
    assert answer.status_code == 200


def test_the_command_line_says_the_same(viewer: Client, cli: CommandLine) -> None:
    after = "2026-03-28T12:00:00Z"
    said = cli.ok("timing", "daily 02:30", "--tz", "Europe/Berlin", "--after", after, "-n", "3", "--json").json
    query = {"text": "daily 02:30", "zone": "Europe/Berlin", "after": after, "n": "3"}
    assert viewer.get(PREVIEW, params=query).json() == said


def test_the_loop_goes_on_while_a_timing_is_looked_at(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = threading.Event()
    timings = web.container.services.timings

    async def both() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def preview(*_: Any, **__: Any) -> None:
            loop.call_soon_threadsafe(begun.set)
            assert shown.wait(10), "the loop did not go on"
            raise InvalidInput("enough")

        monkeypatch.setattr(timings, "preview", preview)
        looking = asyncio.ensure_future(timings.preview_aside("every 5m"))
        await begun.wait()
        shown.set()
        with pytest.raises(InvalidInput, match="enough"):
            await looking

    web.run(asyncio.wait_for(both(), 20))
