"""A whole cron expression: macros, which word is which field, and what is asked about because it has two meanings.

`cron_fields.py` reads each field, `cron_days.py` finds the days; `cron.py` is the timing.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from functools import lru_cache

from ostinato.errors import TimingError
from ostinato.timing.cron_days import DayFields, day_rule, ever_matches
from ostinato.timing.cron_fields import (
    CronField,
    FromEnd,
    Item,
    Kind,
    Nearest,
    Nth,
    Span,
    Spread,
    WrongItem,
    bounds,
    read_field,
)
from ostinato.timing.explain import WEEKDAYS
from ostinato.timing.pattern import TimesOfDay, WallPattern

__all__ = ["MACROS", "CompiledCron", "compile_cron", "day_line", "on_last_day", "relaxed"]

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIVE = (Kind.MINUTE, Kind.HOUR, Kind.DAY, Kind.MONTH, Kind.WEEKDAY)
_UNITS = {Kind.SECOND: "s", Kind.MINUTE: "m", Kind.HOUR: "h", Kind.DAY: "d"}
_FEW_FIXES = 8
_SATURDAY = 6
_WITH_AND_WITHOUT_LEAP_DAY = (2027, 2028)
_ZERO = read_field("0", Kind.SECOND)


@dataclass(frozen=True, slots=True)
class CompiledCron:
    """A checked expression: its fields, the pattern of its due times, and how it treats clock changes."""

    second: CronField
    minute: CronField
    hour: CronField
    days: DayFields
    pattern: WallPattern
    follows_clock: bool
    needs_name: bool
    """Whether an `H` in it waits for the name that chooses its value."""

    @property
    def first_missing_day(self) -> int:
        """The day of the month that some of its months lack, where it is due on no earlier one; else 0."""
        day, year = self.days.day, self.days.year
        numbers = [*day.values, *(item.day for item in day.items if isinstance(item, Nearest))]
        if self.days.either or any(isinstance(item, FromEnd) for item in day.items) or not numbers:
            return 0
        years = _WITH_AND_WITHOUT_LEAP_DAY if year is None or year.is_any else year.values
        shortest = min(monthrange(one, month)[1] for one in years for month in self.days.month.values)
        return min(numbers) if min(numbers) > shortest else 0


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the expression, where it begins in it, and which field it is."""

    text: str
    position: int
    kind: Kind


@lru_cache(maxsize=4096)
def compile_cron(expression: str, name: str | None = None) -> CompiledCron:
    """Check an expression and make its pattern; a wrong one is a TimingError that points at the place."""
    try:
        return _compiled(expression, name)
    except TimingError as error:
        error.hint = _mended(error.hint)
        raise


def day_line(word: str, minute: int = 0, hour: int = 0) -> str:
    """The line that is due on a day that only cron can say: `15W`, `L-3`, `FRIL`, `2#1`. A small w is for weeks, and an
    L alone for the last day of a month or of a week."""
    for kind, days in ((Kind.DAY, f"{word} * *"), (Kind.WEEKDAY, f"* * {word}")):
        try:
            (item,) = read_field(word, kind).items
        except (WrongItem, ValueError):
            continue
        if isinstance(item, FromEnd | Nearest | Nth) and "w" not in word and word not in ("L", "l"):
            return f"{minute} {hour} {days}"
    return ""


def on_last_day(expression: str) -> str:
    """The line with the last day of its months for its days."""
    words = expression.split()
    kinds = _kinds(words)
    return " ".join("L" if kind is Kind.DAY else word for word, kind in zip(words, kinds, strict=True))


def relaxed(expression: str) -> str:
    """An expression that an earlier version stored, in words that mean the same and are taken now: without a step
    that its range cannot hold, and with cron's `*` for a `?`, so that its weekdays count as cron's do."""
    words = expression.split()
    kinds = _kinds(words)
    if expression.startswith("@") or len(words) == 7 or len(kinds) != len(words):
        return expression
    plain = [
        "*" if word == "?" and kind in (Kind.DAY, Kind.WEEKDAY) else word
        for word, kind in zip(words, kinds, strict=True)
    ]
    return " ".join(
        ",".join(_held(item, kind) for item in word.split(",")) for word, kind in zip(plain, kinds, strict=True)
    )


def _held(item: str, kind: Kind) -> str:
    """The item with a step that its range holds: what begins with `*` stays a wildcard."""
    try:
        read_field(item, kind)
    except WrongItem as error:
        if error.too_long is not None:
            low, high = bounds(kind)
            return f"*/{high - low + 1}"
        return error.right or item if "/" in item else item
    return item


def _mended(hint: str) -> str:
    """The hint with all else put right that is wrong with it; none where it stays wrong."""
    for _ in range(_FEW_FIXES):
        if not hint or hint.startswith("every "):
            return hint
        try:
            _compiled(hint, None)
        except TimingError as error:
            hint = error.hint
        else:
            return hint
    return ""


def _compiled(expression: str, name: str | None) -> CompiledCron:
    words = _words(expression)
    fields = {word.kind: _field(expression, words, word, name) for word in words}
    second = fields.get(Kind.SECOND, _ZERO)
    days = DayFields(fields[Kind.DAY], fields[Kind.MONTH], fields[Kind.WEEKDAY], fields.get(Kind.YEAR))
    _ask_about_quartz(expression, words)
    needs_name = any(field.needs_name for field in fields.values())
    rule = day_rule(days)
    if not needs_name and not ever_matches(rule, days.year):
        raise _impossible(expression, words, days)
    minute, hour = fields[Kind.MINUTE], fields[Kind.HOUR]
    # Debian's rule: a job at fixed times runs once whatever DST does, one with wildcards follows the clock.
    follows_clock = second.starred or minute.starred or hour.starred
    times = TimesOfDay(hour.values, minute.values, second.values)
    return CompiledCron(second, minute, hour, days, WallPattern(rule, times), follows_clock, needs_name)


def _words(expression: str) -> list[_Word]:
    """The words with the fields that they are."""
    given = [(match[0], match.start()) for match in re.finditer(r"\S+", expression)]
    if given and given[0][0].startswith("@"):
        given = [(word, given[0][1]) for word in _macro(expression, given).split()]
    kinds = _kinds([word for word, _ in given])
    if len(kinds) != len(given):
        raise _wrong_number(expression, given)
    return [_Word(word, position, kind) for (word, position), kind in zip(given, kinds, strict=True)]


def _kinds(words: list[str]) -> tuple[Kind, ...]:
    """Which fields these are. Of six, one is the second or the year: only a year has four digits, and where a `?`
    stands it must be for a day."""
    has_year = len(words) == 6 and (re.match(r"\d{4}", words[5]) or (words[5] == "*" and "?" in (words[2], words[4])))
    if len(words) == 7:
        return Kind.SECOND, *_FIVE, Kind.YEAR
    if len(words) == 6:
        return (*_FIVE, Kind.YEAR) if has_year else (Kind.SECOND, *_FIVE)
    return _FIVE


def _macro(expression: str, given: list[tuple[str, int]]) -> str:
    word, position = given[0][0].lower(), given[0][1]
    if word not in MACROS:
        reason = "there is no start-up to wait for" if word == "@reboot" else "unknown macro"
        raise TimingError(f"{reason}: {given[0][0]}", text=expression, position=position)
    if len(given) > 1:
        raise TimingError(f"nothing may follow {word}", text=expression, position=given[1][1])
    return MACROS[word]


def _wrong_number(expression: str, given: list[tuple[str, int]]) -> TimingError:
    position = given[7][1] if len(given) > 7 else len(expression.rstrip())
    # What is left out at the end is any.
    hint = " ".join([*(word for word, _ in given), *["*"] * (5 - len(given))]) if 0 < len(given) < 5 else ""
    return TimingError(
        "cron has 5 fields (minute hour day month weekday), 6 with seconds first, 7 with a year last too, "
        f"not {len(given)}",
        text=expression,
        position=position,
        hint=hint,
    )


def _field(expression: str, words: list[_Word], word: _Word, name: str | None) -> CronField:
    try:
        return read_field(word.text, word.kind, name)
    except WrongItem as error:
        item = word.text[error.offset :].partition(",")[0]
        if error.too_long is not None:
            hint = _interval(words, word, error.too_long)
        elif word.kind is Kind.WEEKDAY and item in ("L", "l") and _looks_like_quartz(words):
            # Alone it is the last day of the week, which ends with Saturday.
            hint = _replaced(words, word, _with_item(word.text, error.offset, "sat"))
        elif error.right is None:
            hint = ""
        else:
            hint = _replaced(words, word, _with_item(word.text, error.offset, error.right))
        raise TimingError(error.message, text=expression, position=word.position + error.offset, hint=hint) from error


def _with_item(text: str, offset: int, right: str) -> str:
    """The field with another item at this place, and without what is empty in it."""
    items = [text[:offset].rstrip(","), right, text[offset:].partition(",")[2]]
    return re.sub(r",{2,}", ",", ",".join(item for item in items if item)).strip(",")


def _replaced(words: list[_Word], word: _Word, text: str) -> str:
    return " ".join(text if one is word else one.text for one in words) if text else ""


def _interval(words: list[_Word], word: _Word, step: int) -> str:
    """`every 90m` for `*/90 * * * *`, where nothing else is said."""
    kinds = list(Kind)
    others = [one for one in words if one is not word]
    later = all(one.text in ("*", "?") for one in others if kinds.index(one.kind) > kinds.index(word.kind))
    sooner = all(one.text == "0" for one in others if kinds.index(one.kind) < kinds.index(word.kind))
    return f"every {step}{_UNITS[word.kind]}" if word.kind in _UNITS and later and sooner else ""


def _impossible(expression: str, words: list[_Word], days: DayFields) -> TimingError:
    said = {word.kind: word for word in words}
    in_year = f", year {said[Kind.YEAR].text}" if Kind.YEAR in said else ""
    last = "LW" if re.fullmatch(r"\d+W(,\d+W)*", said[Kind.DAY].text, re.IGNORECASE) else "L"
    return TimingError(
        f"this date never occurs: day {said[Kind.DAY].text}, month {said[Kind.MONTH].text}, "
        f"weekday {said[Kind.WEEKDAY].text}{in_year}",
        text=expression,
        position=said[Kind.DAY].position,
        hint=_replaced(words, said[Kind.DAY], last) if days.weekday.is_any else "",
    )


def _ask_about_quartz(expression: str, words: list[_Word]) -> None:
    """Refuse a line of Quartz that is due on other days there: 1 is Sunday, and the week ends with Saturday."""
    word = next(word for word in words if word.kind is Kind.WEEKDAY)
    # The numbers of an `H` are ours: Quartz has none.
    items = [(text.lower(), read_field(text, Kind.WEEKDAY).items[0]) for text in word.text.split(",")]
    # Quartz has no 0: who writes it counts as cron does.
    if not _looks_like_quartz(words) or any(re.match(r"0|.*-0", text) for text, _ in items):
        return
    moved = [(text, _in_quartz(text, item)) for text, item in items]
    if _days_named(moved) == _days_named(items):
        return
    here, there = (",".join(_by_name(text, item) for text, item in found) for found in (items, moved))
    kept = [one for one in words if one.kind is not Kind.YEAR or one.text != "*"]
    in_quartz, in_cron = (_replaced(kept, word, names).replace("?", "*") for names in (there, here))
    raise TimingError(
        f"weekday {word.text!r} has two meanings, for this looks like a line of Quartz, where 1 is Sunday: "
        f"write {in_quartz!r} if it is one, or {in_cron!r} as cron would read it",
        text=expression,
        position=word.position,
        hint=in_quartz,
    )


def _looks_like_quartz(words: list[_Word]) -> bool:
    return len(words) == 7 or any("?" in one.text for one in words)


def _in_quartz(text: str, item: Item) -> Item:
    """What Quartz reads there: its week begins with Sunday = 1, and ends with Saturday."""
    first, dash, last = text.partition("/")[0].partition("-")
    if isinstance(item, Nth):
        return Nth(_quartz_day(text[0], item.weekday), item.nth)
    if not isinstance(item, Span) or first in "*?":
        return item
    begin = _quartz_day(first, item.first)
    end = _quartz_day(last, item.last) if dash else _SATURDAY if "/" in text else begin
    return Span(item.kind, begin, end, item.step)


def _quartz_day(word: str, here: int) -> int:
    return (int(word) - 1) % 7 if word.isdecimal() else here


def _days_named(items: list[tuple[str, Item]]) -> set[object]:
    """The days of all items together, and what is none of the week."""
    spans = [item for _, item in items if isinstance(item, Span)]
    others = [item for _, item in items if not isinstance(item, Span)]
    return {*(value for span in spans for value in span.values), *others}


def _by_name(text: str, item: Item) -> str:
    """An item of the weekday field in names; an `H` as it is written."""
    if isinstance(item, Spread):
        return text.upper()
    if isinstance(item, Nth):
        return _weekday(item.weekday) + ("L" if item.nth < 0 else f"#{item.nth}")
    assert isinstance(item, Span)
    if item.is_whole:
        return "*" if item.step == 1 else f"*/{item.step}"
    first, last = _weekday(item.first), _weekday(item.last)
    return (first if item.size == 1 else f"{first}-{last}") + (f"/{item.step}" if item.step > 1 else "")


def _weekday(number: int) -> str:
    return WEEKDAYS[(number - 1) % 7]
