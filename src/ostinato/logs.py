"""What is logged: one line for each record, without characters that a terminal or a reader of logs would obey.

Texts of others (names, reasons, errors of work, what a client sent) are in what is logged. Every logger of ours is made
here; the formatters are for the entry points that set logging up themselves.
"""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

__all__ = [
    "BRIEF",
    "NAMED",
    "RUN_LOGGER",
    "TIMED",
    "JsonFormatter",
    "LogFormat",
    "LogLevel",
    "RecordFormatter",
    "get_logger",
    "log_fields",
    "one_line",
    "printable",
    "root_level",
    "set_up",
]

LogLevel = Literal["debug", "info", "warning", "error", "critical"]
LogFormat = Literal["auto", "text", "json"]

RUN_LOGGER = "ostinato.runs"
"""What becomes of runs is logged here."""

BRIEF = "%(levelname)s: %(message)s"
"""For a person who looks on."""
NAMED = "%(levelname)s %(name)s: %(message)s"
"""For where the time stands beside it."""
TIMED = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""For a service manager."""

_INDENT = "  "
_SHOWN_OF_GROUP = 3
_OWN = frozenset({*vars(logging.LogRecord("", 0, "", 0, "", (), None)), "message", "asctime", "taskName"})
"""What every record has; all else are fields that whoever logged it gave to it."""


def printable(text: str) -> str:
    r"""The text on one line; what would be obeyed and not shown is written as `\n`, `\x1b` or `\u202e`."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    # Spaces of other scripts count as not printable, and are harmless.
    if char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    return char.encode("unicode_escape").decode()


def one_line(error: BaseException) -> str:
    """`ValueError: boom`, on one line of bounded length. Of a group, what is in it comes first."""
    if isinstance(error, BaseExceptionGroup):
        line = "; ".join(map(one_line, _leaves(error))) + f" ({_of(error)})"
    else:
        line = _of(error)
    return line if len(line) <= 300 else line[:297] + "…"


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions[:_SHOWN_OF_GROUP]:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _of(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its text cannot be shown)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _OneLine(logging.Filter):
    """Makes the message of a record one line. Who set logging up gets it so, whatever the handler."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except Exception:  # the handler says what is wrong with the call, as it does for everybody
            return True
        if (line := printable(message)) != message:
            record.msg, record.args = line, ()
        return True


_lines = _OneLine()


def get_logger(name: str) -> logging.Logger:
    """The logger of this name, whose messages are lines."""
    logger = logging.getLogger(name)
    logger.addFilter(_lines)
    return logger


def log_fields(
    logger: logging.Logger, level: int, text: str, *args: object, fields: Mapping[str, object], error: str | None = None
) -> None:
    """Log a record that has these fields. `error` is the traceback of something that was raised elsewhere, as text:
    formatters put it below the message, as they do with one that is raised here."""
    record = logger.makeRecord(logger.name, level, __file__, 0, text, args, None, extra=fields)
    if error is not None:
        record.exc_text = "\n".join(_line(line) for line in error.rstrip().split("\n"))
    logger.handle(record)


class RecordFormatter(logging.Formatter):
    """A record begins at the margin, and whatever else it has to say (a traceback, lines of others) does not."""

    def format(self, record: logging.LogRecord) -> str:
        first, *rest = super().format(record).split("\n")
        return "\n".join([_line(first), *(_INDENT + _line(line) for line in rest)])


def _line(text: str) -> str:
    return "\t".join(map(printable, text.split("\t")))


class JsonFormatter(logging.Formatter):
    """A record as an object on one line: `time`, `level`, `logger`, `message`, its fields, its traceback as `error`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in _OWN and value is not None}
        shown: dict[str, Any] = {
            **fields,
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            shown["error"] = record.exc_text
        if record.stack_info:
            shown["stack"] = self.formatStack(record.stack_info)
        # Those four first, for whoever reads it with his eyes; and ASCII, in which nothing is obeyed but DEL.
        ordered = {name: shown.pop(name) for name in ("time", "level", "logger", "message")}
        return json.dumps({**ordered, **shown}, default=str).replace("\x7f", "\\u007f")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # logging's name
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def root_level() -> int:
    """How much is logged of what no level is set for."""
    return logging.getLogger().level


def set_up(level: int, formatter: logging.Formatter, stream: TextIO | None = None) -> None:
    """Log to this stream, or to stderr, where nobody has set logging up already."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler])
