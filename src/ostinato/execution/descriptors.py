"""Standard descriptors: 0, 1 and 2 stay taken, whatever a task closes, so that no pipe or file of the engine gets one
of these numbers, into which everybody prints. Asked for before processes are started, and at each beat of a node."""

from __future__ import annotations

import os

__all__ = ["ensure_standard_descriptors"]


def ensure_standard_descriptors() -> None:
    """Put /dev/null where stdin, stdout or stderr was closed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is given out: those below are taken by now.
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            os.set_inheritable(number, True)
