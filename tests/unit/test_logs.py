"""What is logged is one line for each record, whatever text of others is in it."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ostinato
from ostinato.logs import JsonFormatter, RecordFormatter, get_logger, log_fields, one_line, printable
from ostinato.models.states import RunState

_FORGED = "a\n2026-01-01 00:00:00,000 CRITICAL ostinato: forged\r\x1b[2J\x85\u2028\u202e"
_ESCAPED = r"a\n2026-01-01 00:00:00,000 CRITICAL ostinato: forged\r\x1b[2J\x85\u2028\u202e"


@pytest.fixture
def shown() -> Iterator[io.StringIO]:
    """What the root logger writes in the form of `ostinato worker`."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(RecordFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield stream
    finally:
        logging.getLogger().removeHandler(handler)


def test_our_loggers_say_one_line_to_whatever_handler_an_app_has(caplog: pytest.LogCaptureFixture) -> None:
    get_logger("ostinato.engine").error("schedule %s is broken: %s", _FORGED, ValueError(_FORGED))
    assert caplog.messages == [f"schedule {_ESCAPED} is broken: {_ESCAPED}"]


def test_what_can_be_printed_is_logged_as_it_was_with_its_arguments(caplog: pytest.LogCaptureFixture) -> None:
    get_logger("ostinato.engine").error("schedule %r: %s, %d", "nightly", "Grüße\u3000日本\xa0🎵 \\n", 3)
    (record,) = caplog.records
    assert (record.msg, len(record.args or ())) == ("schedule %r: %s, %d", 3)
    assert record.getMessage() == "schedule 'nightly': Grüße\u3000日本\xa0🎵 \\n, 3"


def test_a_traceback_stays_readable_and_begins_no_line_as_a_record_does(shown: io.StringIO) -> None:
    try:
        raise ValueError(_FORGED)
    except ValueError:
        get_logger("ostinato.engine").exception("run 3 failed")
    first, *rest = shown.getvalue().splitlines()
    assert first == "ERROR ostinato.engine: run 3 failed"
    assert rest[0] == "  Traceback (most recent call last):"
    assert rest[-2].startswith("  ValueError: a")
    assert all(line.startswith("  ") and line.isprintable() for line in rest)


def test_lines_of_other_programs_in_the_process_stay_lines(shown: io.StringIO) -> None:
    logging.getLogger("shop").error("a table:\none\ttwo\nthree \x1b[31m")
    assert shown.getvalue() == "ERROR shop: a table:\n  one\ttwo\n  three \\x1b[31m\n"


def test_json_has_the_message_its_fields_and_the_traceback_on_one_line_that_nothing_obeys() -> None:
    try:
        raise ValueError(_FORGED)
    except ValueError:
        logger = logging.getLogger("shop")
        record = logger.makeRecord(
            *("shop", logging.ERROR, "", 0, "told: %s\x7f", (_FORGED,), sys.exc_info()),
            extra={"run": 3, "path": Path("/srv"), "nothing": None, "level": "mine", "state": RunState.FAILED},
        )
    record.created = 1_767_225_600.25
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert line.isprintable()
    told = json.loads(line)
    error = told.pop("error")
    assert error.startswith("Traceback (most recent call last):\n")
    assert error.endswith(f"ValueError: {_FORGED}")
    assert told == {
        "time": "2026-01-01T00:00:00.250Z",
        "level": "ERROR",
        "logger": "shop",
        "message": f"told: {_FORGED}\x7f",
        "run": 3,
        "path": "/srv",
        "state": "failed",
    }


def test_json_shows_the_stack_of_a_record() -> None:
    record = logging.LogRecord("shop", logging.INFO, "", 0, "here", (), None, sinfo="Stack:\n  a line")
    assert json.loads(JsonFormatter().format(record))["stack"] == "Stack:\n  a line"


def test_a_traceback_of_elsewhere_is_shown_below_the_message_by_any_formatter(
    caplog: pytest.LogCaptureFixture, shown: io.StringIO
) -> None:
    story = "Traceback (most recent call last):\n  a.py\nValueError: \x1b[2J\n"
    log_fields(get_logger("ostinato.runs"), logging.ERROR, "run %s failed", 3, fields={"run": 3}, error=story)
    (record,) = caplog.records
    plain = logging.Formatter("%(message)s").format(record)
    assert plain == "run 3 failed\nTraceback (most recent call last):\n  a.py\nValueError: \\x1b[2J"
    assert shown.getvalue().splitlines()[1:3] == ["  Traceback (most recent call last):", "    a.py"]
    assert json.loads(JsonFormatter().format(record))["error"] == plain.partition("\n")[2]


def test_a_message_that_cannot_be_made_is_left_to_the_handler(caplog: pytest.LogCaptureFixture) -> None:
    record = logging.LogRecord("ostinato", logging.ERROR, "", 0, "%d", ("text",), None)
    assert all(one.filter(record) for one in get_logger("ostinato").filters if isinstance(one, logging.Filter))


def test_half_a_character_is_written_out() -> None:
    assert printable("a\udc80b") == r"a\udc80b"


@pytest.mark.parametrize("text", ["", "plain", "Grüße", "a b", "\u3000", "🎵"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_every_logger_of_ours_is_one_that_cleans() -> None:
    source = Path(ostinato.__file__).parent
    raw = re.compile(r"logging\.getLogger\((?!\"uvicorn)|logging\.basicConfig\(")
    others = {"logs.py", "apprise_channel.py"}  # the second overhears what apprise and urllib3 log
    found = [path.name for path in source.rglob("*.py") if path.name not in others and raw.search(path.read_text())]
    assert found == []


def test_a_group_of_errors_is_told_by_what_is_in_it() -> None:
    inner = ExceptionGroup("deeper", [KeyError("x")])
    group = ExceptionGroup("unhandled errors in a TaskGroup", [ValueError("inner"), inner])
    assert one_line(group) == (
        "ValueError: inner; KeyError: 'x' (ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions))"
    )
    assert len(one_line(ExceptionGroup("many", [ValueError("x" * 100) for _ in range(1000)]))) <= 300
