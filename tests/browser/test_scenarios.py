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
from tests.browser.scenario import play as play_scenario
from tests.browser.seed import fill_shop, fill_with_many
from tests.browser.server import Server

Play = Callable[..., None]

pytestmark = BOUNDED


def test_the_link_logs_in_once_and_logging_out_closes_the_door(play: Play) -> None:
    play("log-in")


def test_the_cookie_opens_nothing_for_another_port_of_the_host(play: Play) -> None:
    play("other-port")


def test_a_login_serves_every_tab_and_ends_in_every_tab(play: Play) -> None:
    play("several-tabs")


def test_a_schedule_is_added_by_typing_and_its_run_is_watched_live(play: Play) -> None:
    play("add-and-watch")


def test_a_schedule_that_failed_three_times_is_broken_until_it_is_fixed(play: Play) -> None:
    play("break-and-fix")


def test_schedules_are_found_paused_backfilled_edited_and_removed(play: Play) -> None:
    play("manage")


def test_a_running_run_is_cancelled_with_a_reason_and_tried_again(play: Play) -> None:
    play("cancel")


def test_times_are_those_of_the_browser_until_another_zone_is_chosen(play: Play) -> None:
    play("zones")


def test_a_viewer_sees_everything_and_changes_nothing(play: Play) -> None:
    play("viewer")


def test_what_was_seen_stays_while_the_server_is_away_and_is_fresh_when_it_is_back(play: Play) -> None:
    play("disconnect")


def test_without_an_engine_the_page_says_how_to_start_one_and_sees_what_others_run(tmp_path: Path) -> None:
    with Server(tmp_path, command="web") as server:
        play_scenario("no-engine", server, tmp_path / "browser")


def test_the_page_works_without_a_mouse(play: Play) -> None:
    play("keyboard")


def test_lanes_sessions_and_nodes_are_steered_from_the_page(tmp_path: Path, served_shop: Server) -> None:
    play_scenario("steering", served_shop, tmp_path / "browser")


@pytest.fixture
def served_shop(tmp_path: Path) -> Iterator[Server]:
    """`ostinato up` with the app and the month of a small shop."""
    folder = tmp_path / "shop"
    folder.mkdir()
    fill_shop(folder, datetime.now(UTC))
    shutil.copy(shop.__file__, folder / "shop.py")
    with Server(folder, "--app", "shop:app") as server:
        yield server


def test_every_page_fits_its_screen_and_is_read_out(tmp_path: Path, served_shop: Server) -> None:
    run = served_shop.cli("schedule", "trigger", "reindex-search").strip()
    served_shop.cli("session", "send", "chat:ada", "Is the blue lamp in stock?", "--task", "chat.reply")
    play_scenario("every-page", served_shop, tmp_path / "browser", SHOP_RUN=run)


def test_what_work_says_is_text_on_every_page(tmp_path: Path) -> None:
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
        play_scenario("hostile", server, tmp_path / "browser", RUN=run, ANSWER=answer)


def test_a_list_of_ten_thousand_schedules_scrolls_with_few_rows_in_the_document(tmp_path: Path) -> None:
    fill_with_many(tmp_path, 10_000)
    with Server(tmp_path) as server:
        play_scenario("many", server, tmp_path / "browser")
