"""Named places at which a test lets this process stop, die or fail. Only the environment switches them on.

`OSTINATO_FAILPOINTS="postgres.commit=stop"` stops the process (SIGSTOP) the first time that it comes by;
`postgres.statement@7=kill` kills it the seventh time, `=raise` raises an error there, and `recorder.*=kill%0.01` kills
it every hundredth time on average, at whichever of these places it comes by. Several are separated by commas. Without
the variable nothing is looked up: `ON` is False, and whoever is on a hot path asks that first.
"""

from __future__ import annotations

import os
import random
import re
import signal
from collections import Counter
from fnmatch import fnmatchcase
from typing import NamedTuple

__all__ = ["ON", "FailpointReached", "reach"]

_ENTRY = re.compile(r"([a-z*][a-z_.*]*)(?:@([1-9][0-9]*))?=(stop|kill|raise)(?:%(0?\.[0-9]+|1))?")


class FailpointReached(Exception):
    """What a failpoint with `=raise` raises."""


class _Entry(NamedTuple):
    """What happens where; the time that is named, or by chance."""

    pattern: str
    time: int
    action: str
    probability: float | None


def _read(text: str) -> list[_Entry]:
    """The entries of the variable."""
    read: list[_Entry] = []
    for entry in filter(None, map(str.strip, text.split(","))):
        found = _ENTRY.fullmatch(entry)
        if found is None or (found[2] and found[4]):
            forms = "NAME=stop, NAME@TIMES=kill, NAME=raise or NAME=kill%0.01"
            raise ValueError(f"OSTINATO_FAILPOINTS: {entry!r} is not {forms}")
        read.append(_Entry(found[1], int(found[2] or 1), found[3], None if found[4] is None else float(found[4])))
    return read


_wanted = _read(os.environ.get("OSTINATO_FAILPOINTS", ""))
_passed = Counter[str]()
_chance = random.Random()  # its own: the numbers of the program stay as they are
ON = bool(_wanted)
"""Whether any failpoint is switched on; decided when this is imported."""


def reach(name: str) -> None:
    """The process comes by the place of this name."""
    if not ON:
        return
    _passed[name] += 1
    for entry in _wanted:
        if fnmatchcase(name, entry.pattern) and _is_hit(entry, _passed[name]):
            _act(entry.action, name)


def _is_hit(entry: _Entry, passed: int) -> bool:
    return passed == entry.time if entry.probability is None else _chance.random() < entry.probability


def _act(action: str, name: str) -> None:
    match action:
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            raise FailpointReached(name)
