"""Days as people write them: `monday through friday`, `the 1st and the 15th`, `last workday of the month`.

`words.py` asks it wherever a form has days; `month_days.py` knows what they mean.
"""

from __future__ import annotations

import re

from ostinato.timing.month_days import LAST, ORDINALS, weekday_numbers
from ostinato.timing.reading import Words

__all__ = ["at_month_day", "at_weekdays", "read_month_days", "read_ordinal", "read_weekdays"]

_THROUGH = ("-", "–", "through", "thru", "to", "till", "until")
_AND = ("and", "&", "+")
_WORKING = ("business", "working", "work")
_SPELLED = {word: number for number, word in enumerate(ORDINALS, start=1)}
_SPELLED |= {"1st": 1, "2nd": 2, "3rd": 3, "21st": 21, "22nd": 22, "23rd": 23, "31st": 31}
_SPELLED |= {f"{day}th": day for day in range(4, 31) if day not in (21, 22, 23)}


def at_weekdays(words: Words, ahead: int = 0) -> bool:
    """Whether weekdays come."""
    word = words.peek(ahead)
    if word in _WORKING:
        return words.peek(ahead + 1) in ("day", "days")
    return _is_weekday(re.split("[,–-]", word)[0])


def _is_weekday(name: str) -> bool:
    try:
        return bool(weekday_numbers(name))
    except KeyError:
        return False


def read_weekdays(words: Words) -> list[str]:
    """`mon,thu`, `monday and thursday`, `mon - fri`, `monday through friday`, `weekdays`, `business days`."""
    names: list[str] = []
    words.skip("from")
    while at_weekdays(words) or (names and words.peek() in _AND and at_weekdays(words, 1)):
        words.skip(*_AND)
        if words.skip(*_WORKING):
            words.take()
            names.append("weekdays")
            continue
        check_weekdays(words)
        items = words.take().lower.replace("–", "-").split(",")
        if words.peek() in _THROUGH and at_weekdays(words, 1):
            words.take()
            check_weekdays(words)
            first, *more = words.take().lower.split(",")
            items[-1:] = [f"{items[-1]}-{first}", *more]
        names += items
    return names


def check_weekdays(words: Words) -> None:
    """Point at the item of a list of days that is none."""
    offset = 0
    for item in words.words[words.index].raw.split(","):
        if not all(_is_weekday(name) for name in re.split("[–-]", item)):
            shift = len(item) - len(item.lstrip())
            words.wrong(f"{item.strip()!r} is not a weekday", offset=offset + shift)
        offset += len(item) + 1


def read_ordinal(word: str) -> int | None:
    """`2nd` and `second` are 2."""
    return _SPELLED.get(word)


def at_month_day(words: Words) -> bool:
    """Whether a day of the month comes, by its name or its number."""
    first = words.peek().split(",")[0].strip()
    is_number = first.isdecimal() and first.isascii() and words.peek(1) not in ("am", "pm")
    return first in _SPELLED or first == LAST or is_number


def read_month_days(words: Words) -> str:
    """`1`, `1st`, `1 and 15`, `last`, `first day`, `first and third monday`, `last workday`, `of the month`."""
    numbers: list[str] = []
    while at_month_day(words) or (numbers and words.peek() in _AND):
        if numbers:
            words.skip(*_AND)
            words.skip("the")
        numbers += _read_numbers(words)
        if words.peek() not in _AND:
            break
    if not numbers:
        word = words.peek()
        words.wrong(f"{word!r} is not a day of the month" if word else "a day of the month is missing")
    kind = _read_kind(words)
    if kind != "day":
        if any(number != LAST and int(number) > 5 for number in numbers):
            words.index -= 1
            words.wrong("a month has five of a weekday at most")
        numbers = [number if number == LAST else ORDINALS[int(number) - 1] for number in numbers]
    if words.skip("of", "in"):
        words.skip("the", "every", "each", "a")
        words.skip("month")
    return f"{','.join(numbers)} {kind}"


def _read_numbers(words: Words) -> list[str]:
    """The items of one word."""
    found, offset = [], 0
    for item in words.words[words.index].raw.split(","):
        name = item.strip().lower()
        number = _SPELLED.get(name) or (int(name) if name.isdecimal() and name.isascii() and len(name) < 9 else 0)
        shift = len(item) - len(item.lstrip())
        if name != LAST and not 1 <= number <= 31:
            none = f"there is no day {name} in any month" if number or name.isdecimal() else ""
            words.wrong(none or f"{name!r} is not a day of the month", offset=offset + shift)
        found.append(LAST if name == LAST else str(number))
        offset += len(item) + 1
    words.take()
    return found


def _read_kind(words: Words) -> str:
    if words.skip("day", "days"):
        return "day"
    if words.skip("workday", "weekday", "workdays", "weekdays"):
        return "workday"
    if words.peek() in _WORKING and words.peek(1) in ("day", "days"):
        words.index += 2
        return "workday"
    if not at_weekdays(words) or words.peek().startswith("weekend"):
        return "day"
    days = weekday_numbers(words.peek()) if _is_weekday(words.peek()) else ()
    if len(days) != 1:
        words.wrong("one weekday can be the first or the last of a month")
    return words.take().lower
