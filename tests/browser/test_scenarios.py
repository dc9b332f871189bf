"""What a person does on the page, in a real browser against a real server; the scenarios are in web/browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.browser import hostile, shop
from tests.browser.scenario import BOUNDED
from tests.browser.seed import fill_shop, fill_with_busy, fill_with_many
from tests.browser.server import Server
from tests.engine.stand_in import StandIn

Play = Callable[..., None]

pytestmark = BOUNDED


ON_AN_EMPTY_SERVER = {
    "log-in": "the link logs in once and logging out closes the door",
    "other-port": "the cookie opens nothing for another port of the host",
    "several-tabs": "a login serves every tab and ends in every tab",
    "add-and-watch": "a schedule is added by typing and its run is watched live",
    "break-and-fix": "a schedule that failed three times is broken until it is fixed",
    "loads-once": "a page of a quiet server asks for everything once",
    "after": "a schedule that runs after another shows who comes before and after it",
    "calendars": "a calendar is made changed and removed and schedules are planned by it",
    "incidents": "people are told of incidents by channels and rules and see to them",
    "with-errors": "a run that succeeded with errors is marked wherever it is shown",
    "manage": "schedules are found paused backfilled edited and removed",
    "blocked": "what holds up a schedule is said with the button that ends it",
    "cancel": "a running run is cancelled with a reason and tried again",
    "output": "output is followed to its end and its lines never overlap",
    "zones": "times are those of the browser until another zone is chosen",
    "viewer": "a viewer sees everything and changes nothing",
    "disconnect": "what was seen stays while the server is away and is fresh when it is back",
    "keyboard": "the page works without a mouse",
}


@pytest.mark.parametrize("name", ON_AN_EMPTY_SERVER, ids=ON_AN_EMPTY_SERVER.get)
def test_a_person_finds_that(name: str, play: Play, server: Server) -> None:
    play(name, server)


def test_without_an_engine_the_page_says_how_to_start_one_and_sees_what_others_run(tmp_path: Path, play: Play) -> None:
    with Server(tmp_path, command="web") as server:
        play("no-engine", server)


def test_lanes_sessions_and_nodes_are_steered_from_the_page(play: Play, served_shop: Server) -> None:
    play("steering", served_shop)


def test_a_session_is_a_conversation_with_an_agent(tmp_path: Path, play: Play) -> None:
    folder = tmp_path / "chat"
    folder.mkdir()
    agent = StandIn(tmp_path / "agent")
    (folder / "ostinato.toml").write_text(f"[agents.claude]\ncommand = {json.dumps([str(agent.path)])}\n")
    with Server(folder) as server:
        play("chat", server)


@pytest.fixture
def served_shop(tmp_path: Path) -> Iterator[Server]:
    """`ostinato up` with the app and the month of a small shop."""
    folder = tmp_path / "shop"
    folder.mkdir()
    fill_shop(folder, datetime.now(UTC))
    shutil.copy(shop.__file__, folder / "shop.py")
    with Server(folder, "--app", "shop:app") as server:
        yield server


def test_every_page_fits_its_screen_and_is_read_out(play: Play, served_shop: Server) -> None:
    run = served_shop.cli("schedule", "trigger", "reindex-search").strip()
    served_shop.cli("session", "send", "chat:ada", "Is the blue lamp in stock?", "--task", "chat.reply")
    play("every-page", served_shop, SHOP_RUN=run)


def test_what_work_says_is_text_on_every_page(tmp_path: Path, play: Play) -> None:
    folder = tmp_path / "hostile"
    folder.mkdir()
    shutil.copy(hostile.__file__, folder / "hostile.py")
    name, session = "<img src=x onerror='window.hacked=1'>", "<script>window.hacked=1</script>"
    with Server(folder, "--app", "hostile:app") as server:
        add = ("schedule", "add", name, "daily 03:00", "--app", "hostile:app", "--note", hostile.MARKUP)
        server.cli(*add, "--task", "attack")
        run = server.cli("schedule", "trigger", name).strip()
        server.cli("session", "send", session, f"payload {hostile.MARKUP}", "--task", "answer")
        answer = str(json.loads(server.cli("run", "ls", "--json"))[0]["id"])
        play("hostile", server, RUN=run, ANSWER=answer)


def test_words_that_no_line_can_hold_stay_in_their_boxes(tmp_path: Path, play: Play) -> None:
    folder = tmp_path / "endless"
    folder.mkdir()
    shutil.copy(hostile.__file__, folder / "hostile.py")
    word, channel = "w" * 120, "w" * 40
    with Server(folder, "--app", "hostile:app") as server:
        server.cli("notify", "add", channel, f"json://127.0.0.1:9/{word}")
        for name, policy in ((word, ("--break-after", "1")), ("paused", ("--notify", channel))):
            server.cli("schedule", "add", name, "every 1s", "--app", "hostile:app", "--task", "endless", *policy)
        server.cli("schedule", "disable", "paused", "--note", word * 3)
        server.cli("lane", "pause", "team", "--note", word * 3)
        server.cli("session", "send", word, word * 20, "--task", "endless")
        play("long-words", server, LONG_NAME=word)


def test_a_timeline_of_thousands_of_runs_has_no_gap_and_shows_every_failure(tmp_path: Path, play: Play) -> None:
    fill_with_busy(tmp_path, days=1.2)
    with Server(tmp_path) as server:
        play("timeline", server)


def test_a_list_of_ten_thousand_schedules_scrolls_with_few_rows_in_the_document(tmp_path: Path, play: Play) -> None:
    fill_with_many(tmp_path, 10_000)
    with Server(tmp_path) as server:
        play("many", server)
