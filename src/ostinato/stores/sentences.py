"""What a schedule's row says in words: its timing, and why it is not due. Called by rows.py."""

from __future__ import annotations

from ostinato.errors import TimingError
from ostinato.timing import After, parse_timing
from ostinato.timing.calendar_days import folded
from ostinato.timing.text_cache import TextCache

__all__ = ["sentence_of", "why_not_due"]


def _sentence_of(timing: str, zone: str) -> tuple[str, str | None, bool, bool]:
    try:
        found = parse_timing(timing, tz=zone, stored=True)
        return found.explain(), None, found.wants_name, isinstance(found, After) and found.within is not None
    except TimingError as error:
        return "", f"its timing {folded(timing)!r} is not readable: {error.message}", False, False


sentence_of = TextCache(_sentence_of, 4_096)
"""What a timing says in English, or why not; whether a name says more; and whether it gathers several ends."""


def why_not_due(
    enabled: bool,
    broken: str | None,
    orphaned: bool,
    off_note: str | None,
    after_finish: bool,
    remaining: int | None,
    waits_for: str,
) -> str:
    """The reason of a schedule that has no next due time."""
    if broken:
        return f"broken: {broken}"
    if orphaned:
        return "orphaned: the code no longer declares it"
    if remaining == 0:
        return "finished: it ran as often as it should"
    if not enabled:
        return f"disabled: {off_note}" if off_note else "disabled"
    if after_finish:
        return "running: the next due time is set when it ends"
    if waits_for:
        return f"it runs {waits_for}"
    return "finished: its timing has no further due time"
