"""How the output of work is printed: line by line, as it comes, raw into a pipe and made harmless for a terminal."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from ostinato.cli.console import emit, emit_json_line, json_text, plain, stdout

if TYPE_CHECKING:
    from ostinato.models.ids import RunId
    from ostinato.models.output import OutputLine

__all__ = ["OutputPrinter", "harmless", "print_result"]

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # cursor, erase, modes, …
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links, device strings
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # the direction of text: a line could read as another
)


def harmless(line: str, *, colours: bool = True) -> str:
    """A line of output as a terminal may get it: its colours, tabs and text, and nothing else that it would obey.

    Of a line that was written over and over, such as a progress bar, the last version is shown.
    """
    versions = [part for part in line.split("\r") if part]
    shown = versions[-1] if versions else ""
    pieces = _COLOUR.split(shown)
    if not colours or len(pieces) == 1:
        return "".join(_CONTROL.sub("", piece) for piece in pieces)
    found = [*_COLOUR.findall(shown), "\x1b[0m"]
    return "".join(_CONTROL.sub("", piece) + colour for piece, colour in zip(pieces, found, strict=True))


class OutputPrinter:
    """Prints the lines of a run."""

    def __init__(self, id: RunId, *, as_json: bool, stamps: bool = False) -> None:
        self.id = id
        self._as_json = as_json
        self._stamps = stamps
        self._is_raw = not stdout().isatty()
        self._colours = not os.environ.get("NO_COLOR")

    def __call__(self, line: OutputLine) -> None:
        """Print it at once."""
        if self._as_json:
            from ostinato.service.answers import line_answer

            emit_json_line({"id": self.id, **plain(line_answer(line))})
            return
        text = line.text if self._is_raw else harmless(line.text, colours=self._colours)
        if self._stamps and line.at is not None:
            text = f"{line.at:%Y-%m-%dT%H:%M:%S}.{line.at.microsecond // 1000:03}Z {text}"
        emit(text)
        stdout().flush()


def print_result(result: Any) -> None:
    """What a task returned: text as it is, as the lines of its output are; everything else as JSON."""
    if not isinstance(result, str):
        emit(json_text(result))
    elif stdout().isatty():
        colours = not os.environ.get("NO_COLOR")
        emit("\n".join(harmless(line, colours=colours) for line in result.split("\n")))
    else:
        emit(result)
    stdout().flush()
