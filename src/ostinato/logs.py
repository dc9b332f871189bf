"""What is logged: one line for each record, without characters that a terminal or a reader of logs would obey.

Texts of others (names, reasons, errors of work, what a client sent) are in what is logged. Every logger of ours is made
here; `RecordFormatter` is for the entry points that set logging up themselves.
"""

from __future__ import annotations

import logging
import unicodedata
from typing import TextIO

__all__ = ["RecordFormatter", "get_logger", "one_line", "printable", "set_up"]

_INDENT = "  "


def printable(text: str) -> str:
    r"""The text on one line; what would be obeyed and not shown is written as `\n`, `\x1b` or `\u202e`."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    # Spaces of other scripts count as not printable, and are harmless.
    if char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    return char.encode("unicode_escape").decode()


def one_line(error: BaseException) -> str:
    """`ValueError: boom`, on one line of bounded length."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its text cannot be shown)"
    line = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return line if len(line) <= 300 else line[:297] + "…"


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


class RecordFormatter(logging.Formatter):
    """A record begins at the margin, and whatever else it has to say (a traceback, lines of others) does not."""

    def format(self, record: logging.LogRecord) -> str:
        first, *rest = super().format(record).split("\n")
        return "\n".join([_line(first), *(_INDENT + _line(line) for line in rest)])


def _line(text: str) -> str:
    return "\t".join(map(printable, text.split("\t")))


def set_up(level: int, form: str, stream: TextIO | None = None) -> None:
    """Log to this stream, or to stderr, where nobody has set logging up already."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(RecordFormatter(form))
    logging.basicConfig(level=level, handlers=[handler])
