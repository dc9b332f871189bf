"""The adaptive throttle: above 60 % of a session's window it goes one at a time. A callback says how full that is, or
else the agent itself, when its run has ended (finishing.py).

It is asked where runs start, before they start (engine/admission.py, engine/direct.py), and when one has ended, before
the next turn is given (engine/recorder.py). It touches nothing that runs.
"""

from __future__ import annotations

from collections.abc import Callable

from ostinato.logs import get_logger, one_line

__all__ = ["FULL_SHARE", "Throttle", "Usage", "is_full"]

log = get_logger("ostinato.execution")

Usage = Callable[[str], tuple[float, float]]
"""How many tokens a session's conversation has, and how many its window holds."""

FULL_SHARE = 0.6


def is_full(context_used: int | None = None, context_window: int | None = None) -> bool | None:
    """Whether an agent's context is so full that its session goes one at a time; None if it did not tell."""
    return None if context_used is None or not context_window else context_used > FULL_SHARE * context_window


class Throttle:
    """What the code of this process says about sessions; nothing, until it says how."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self._has_failed = False

    def look(self, session: str) -> bool | None:
        """Whether the session goes one at a time; None when nobody can tell."""
        if self.usage is None or session.startswith("schedule:"):
            return None
        try:
            tokens, window = self.usage(session)
            return bool(tokens > FULL_SHARE * window)
        except Exception as error:
            # The whole story once: it is asked before every start.
            story, self._has_failed = None if self._has_failed else error, True
            log.error(
                "the throttle could not tell how full session %r is, nothing changes for it: %s",
                session,
                one_line(error),
                exc_info=story,
            )
            return None
