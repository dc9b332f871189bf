"""What people type on a phone is read as they mean it; what is said is cut where a reader would cut it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.errors import InvalidInput
from ostinato.integrations.telegram.parsing import Command, NewFromChat, name_for, parse_command, parse_new_schedule
from ostinato.notifications.telegram_api import parts_of


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/status", Command("status", "")),
        (" /Status@Our_Bot ", Command("status", "", is_addressed=True)),
        ("/why  the report\n", Command("why", "the report")),
        ("/schedule add\n--once x", Command("schedule", "add\n--once x")),
        ("/status@other_bot", None),
        ("status", None),
        ("/", None),
        ("/srv/data is full", None),
        ("", None),
    ],
)
def test_a_command_begins_with_a_slash_and_is_for_this_bot(text: str, command: Command | None) -> None:
    assert parse_command(text, "our_bot") == command


@pytest.mark.parametrize(
    ("rest", "new"),
    [
        ('"*/5 * * * *" say hello', NewFromChat("*/5 * * * *", "say hello")),
        ("“daily 09:00” say “hello”", NewFromChat("daily 09:00", "say “hello”")),
        ("„every 5m“ sag hallo", NewFromChat("every 5m", "sag hallo")),
        ("—once '@daily' x", NewFromChat("@daily", "x", once=True)),
        (
            '--type shell --once --project shop --name daily --tz Europe/Berlin "@daily" ls -l\npwd',
            NewFromChat("@daily", "ls -l\npwd", "shell", True, "shop", "daily", "Europe/Berlin"),
        ),
        ('--type=shell "@daily" ls --all', NewFromChat("@daily", "ls --all", "shell")),
    ],
)
def test_a_new_schedule_is_read_as_phones_write_it(rest: str, new: NewFromChat) -> None:
    assert parse_new_schedule(rest) == new


@pytest.mark.parametrize(
    "rest",
    ["", "* * * * * x", '"@daily"', '"@daily x', '"" x', '--type python "@daily" x', '--force "@daily" x', "--type"],
)
def test_what_cannot_be_read_is_refused_with_what_can(rest: str) -> None:
    with pytest.raises(InvalidInput, match=r"/schedule add \[--type|it is agent or shell"):
        parse_new_schedule(rest)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Summarise the new issues, please!", "summarise-the-new-issues-please"),
        ("rm -rf /tmp/x", "rm-rf-tmp-x"),
        ("wort " * 30, "wort-wort-wort-wort-wort-wort-wort-wort"),
        ("x" * 100, "x" * 40),
        ("!!!", "from-chat"),
    ],
)
def test_a_schedule_is_called_by_its_first_words(text: str, name: str) -> None:
    assert name_for(text) == name


@given(st.text(alphabet=st.sampled_from("ab \n😀é"), max_size=400), st.integers(10, 60))
def test_parts_are_never_too_long_and_lose_nothing_but_blanks(text: str, most: int) -> None:
    parts = parts_of(text, most)
    assert all(0 < units(part) <= most for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_parts_end_where_lines_end() -> None:
    lines = [f"line {number}" for number in range(100)]
    parts = parts_of("\n".join(lines), 100)
    assert [line for part in parts for line in part.split("\n")] == lines
    assert parts_of("short") == ["short"]
    assert [units(part) for part in parts_of("😀" * 5_000)] == [4096, 4096, 1808]
