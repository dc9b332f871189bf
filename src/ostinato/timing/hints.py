"""What a wrong timing should have been: a text that is a timing and means what was asked, or nothing.

Called by `text.py`. A reader says what its words should have been where it knows; here misspelled words are put right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import lru_cache

from ostinato.errors import TimingError
from ostinato.timing.explain import WEEKDAY_NAMES, WEEKDAYS
from ostinato.timing.month_days import LAST, ORDINALS
from ostinato.timing.reading import UNITS, NeedsNow

__all__ = ["right_text"]

_MEANT = frozenset(
    {
        "every",
        "daily",
        "weekly",
        "monthly",
        "quarterly",
        "hourly",
        "minutely",
        "secondly",
        "yearly",
        "weekdays",
        "weekends",
        "weekday",
    }
    | {"weekend", "workday", "workdays", "after", "finish", "until", "today", "tomorrow", "noon", "midnight"}
    | {
        "month",
        "months",
        "week",
        "weeks",
        "quarter",
        "cron",
        "between",
        "through",
        "jitter",
        "stable",
        "except",
        "holidays",
        "calendar",
        "runs",
    }
    | {LAST, *ORDINALS, *WEEKDAYS, *(name for name in UNITS if len(name) > 2)}
    | {name.lower() for name in WEEKDAY_NAMES}
    | {f"{name.lower()}s" for name in WEEKDAY_NAMES}
    | {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@every"}
)
_KNOWN = _MEANT | {"the", "and", "each", "everyday", "annually", "from", "starting", "other", "year", "business", "end"}
_KNOWN |= {"thru", "till", "once", "twice", "times", "biweekly", "bimonthly", "fortnight", "fortnightly", "next"}
_KNOWN |= {"holiday", "calendars", "four", "fifty", "moon"}
# `FRIL` is the last Friday to cron.
_KNOWN |= {f"{name.lower()}l" for name in (*WEEKDAYS, *WEEKDAY_NAMES)} | {f"l{name}" for name in WEEKDAYS}
_STEMS = tuple(word for word in _KNOWN if len(word) > 4 and word.isalpha())
# In the parentheses of `calendar(office)` is a name.
_WORD = re.compile(r'(?<=[A-Za-z])\((?:"(?:[^"\\]|\\.)*"|[^()"])*\)|(?<![A-Za-z/_])@?[A-Za-z]{3,}(?![A-Za-z/_])')
_ALIKE, _AHEAD = 0.8, 0.04
_LONGEST, _MOST_FIXES = 500, 3


def right_text(error: TimingError, parse: Callable[[str], object]) -> str:
    """A text that can be parsed: what the error proposes, or its text with the misspelled words put right."""
    for text in (error.hint, _put_right(error.hint), _put_right(error.text)):
        # Put right, it may be wrong in a way that its reader knows.
        for _ in range(_MOST_FIXES):
            further = _wrong(text, parse) if text else None
            if text and further is None:
                return " ".join(text.split())
            text = further.hint if further is not None else ""
    return ""


def _wrong(text: str, parse: Callable[[str], object]) -> TimingError | None:
    """What is wrong with a text; None if it is a timing."""
    try:
        parse(text)
    except NeedsNow:
        return None
    except TimingError as error:
        return error
    return None


def _put_right(text: str) -> str:
    # What is 'after' are names, which may be words of any kind.
    if len(text) > _LONGEST or text.split(maxsplit=1)[:1] == ["after"]:
        return ""
    return _WORD.sub(lambda word: word[0] if word[0][0] == "(" else _spelled(word[0].lower()) or word[0], text)


def _is_prefixed(word: str) -> bool:
    """`triweekly` and `unstable` mean something else than their stems."""
    return any(word.endswith(stem) and len(word) - len(stem) > 1 for stem in _STEMS)


@lru_cache(maxsize=1024)
def _spelled(word: str) -> str | None:
    """The one word that this is meant to be, if it is clear; letters that changed places are."""
    if word in _KNOWN or _is_prefixed(word):
        return None
    swapped = [known for known in _MEANT if sorted(known) == sorted(word)]
    if len(swapped) == 1:
        return swapped[0]
    alike = sorted(((SequenceMatcher(None, word, known).ratio(), known) for known in _MEANT), reverse=True)
    best = alike[0][0]
    close = [known for ratio, known in alike if best - ratio < _AHEAD]
    if len(close) > 1:
        # People seldom get the first letter wrong.
        close = [known for known in close if known[0] == word[0]]
    return close[0] if best >= _ALIKE and len(close) == 1 else None
