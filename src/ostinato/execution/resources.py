"""What a node lacks of its own: descriptors, processes, threads, memory. Its want is no failure of the work.

A run that could not be started for it goes back to the queue, uncounted. The executors and the runner ask here.
"""

from __future__ import annotations

import errno
from datetime import timedelta

from ostinato.execution.outcome import Blame, Outcome, OutcomeKind

__all__ = ["EXHAUSTED", "is_exhausted", "starved"]

EXHAUSTED = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOBUFS})
_WAIT = timedelta(seconds=5)
_NO_THREAD = "can't start new thread"


def is_exhausted(error: BaseException) -> bool:
    """Whether this, or what caused it, says that the node has no room just now."""
    return _says_so(error) or (error.__cause__ is not None and _says_so(error.__cause__))


def starved(reason: str) -> Outcome:
    """The end of a start that this node had no room for: it was no attempt."""
    return Outcome(OutcomeKind.PUT_OFF, f"this node had no room to start it: {reason}", delay=_WAIT, blame=Blame.NODE)


def _says_so(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in EXHAUSTED
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_THREAD in str(error))
