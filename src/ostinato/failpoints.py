"""Named places at which a test lets this process stop, die or fail. Only the environment switches them on.

`OSTINATO_FAILPOINTS="postgres.commit=stop"` stops the process (SIGSTOP) the first time that it comes by;
`postgres.statement@7=kill` kills it the seventh time, and `=raise` raises an error there. Several are separated by
commas. Without the variable nothing is looked up: `ON` is False, and whoever is on a hot path asks that first.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter

__all__ = ["ON", "FailpointReached", "reach"]

_ENTRY = re.compile(r"([a-z][a-z_.]*)(?:@([1-9][0-9]*))?=(stop|kill|raise)")


class FailpointReached(Exception):
    """What a failpoint with `=raise` raises."""


def _read(text: str) -> dict[tuple[str, int], str]:
    """The entries of the variable: a name and which time it is reached, and what happens then."""
    read: dict[tuple[str, int], str] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        found = _ENTRY.fullmatch(entry)
        if found is None:
            raise ValueError(f"OSTINATO_FAILPOINTS: {entry!r} is not NAME=stop, NAME@TIMES=kill or NAME=raise")
        read[found[1], int(found[2] or 1)] = found[3]
    return read


_wanted = _read(os.environ.get("OSTINATO_FAILPOINTS", ""))
_passed = Counter[str]()
ON = bool(_wanted)
"""Whether any failpoint is switched on; decided when this is imported."""


def reach(name: str) -> None:
    """The process comes by the place of this name."""
    if not ON:
        return
    _passed[name] += 1
    match _wanted.get((name, _passed[name])):
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise FailpointReached(name)
        case _:
            pass
