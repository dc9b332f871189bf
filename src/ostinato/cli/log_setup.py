"""How a command that stays (`up`, `worker`, `web`) logs on stderr: as much and in the form that the settings say.

Where nothing is said, `up` and `web` talk to a person: lines of talk, and of the log only what is wrong. Under a format
that is named, everything that would be talk is a record too, so that whoever reads stderr by a program finds nothing
else. It is never JSON unasked: what a program reads must not depend on where the command was started.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ostinato.cli.console import say, stderr, warn
from ostinato.cli.options import LogFlags
from ostinato.logs import BRIEF, TIMED, JsonFormatter, RecordFormatter, get_logger, set_up

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["chosen_log", "said_warnings", "start_log"]

_OURS = "ostinato"


def chosen_log(flags: LogFlags) -> LogFlags:
    """What the flags say, or else the settings. Before there is an app: what its import logs is in the same form."""
    from ostinato.config import load_settings

    settings = load_settings(log_level=flags.log_level, log_format=flags.log_format)
    return LogFlags(settings.log_level, settings.log_format)


def start_log(chosen: LogFlags, *, brief: bool) -> Callable[[str], None]:
    """Set logging up, and answer how to say what is neither a warning nor an error. `brief`: to a person, if no format
    is named."""
    is_brief = brief and chosen.log_format == "auto"
    level = logging.WARNING if is_brief else logging.INFO
    if chosen.log_level is not None:
        level = logging.getLevelNamesMapping()[chosen.log_level.upper()]
    text = RecordFormatter(BRIEF if is_brief else TIMED)
    set_up(level, JsonFormatter() if chosen.log_format == "json" else text, stderr())
    return say if is_brief else get_logger(_OURS).info


class _Said(logging.Handler):
    """Says a warning of ours as the command says its own: with the commands in it as they are typed here. What other
    code logs, such as that of a task, goes where it went."""

    def __init__(self, others: logging.Handler | None) -> None:
        super().__init__(logging.WARNING)
        self._others = others

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] != _OURS:
            if self._others is not None:
                self._others.handle(record)
            return
        try:
            warn(self.format(record))
        except Exception:
            self.handleError(record)


@contextmanager
def said_warnings() -> Iterator[None]:
    """While a command that ends does its work, where nobody has set logging up."""
    before = logging.lastResort
    logging.lastResort = _Said(before)
    try:
        yield
    finally:
        logging.lastResort = before
