"""One field of a cron expression as a value, read once: its matcher and its sentence both come from these items.

`cron_lines.py` cuts an expression into fields and calls `read_field`; `cron_sentence.py` puts fields into words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b

from ostinato.timing.explain import WEEKDAYS
from ostinato.timing.month_days import weekday_numbers

__all__ = [
    "MONTH_NAMES",
    "CronField",
    "FromEnd",
    "Item",
    "Kind",
    "Nearest",
    "Nth",
    "Span",
    "Spread",
    "WrongItem",
    "bounds",
    "read_field",
]

MONTH_NAMES = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_MONTHS = {name.lower(): number for number, name in enumerate(MONTH_NAMES, 1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_SPREAD = re.compile(r"h(?:\((\d+)-(\d+)\))?")
_FROM_END = re.compile(r"l(?:-(\d{1,4}))?(w?)")

_MOST_DIGITS = 8


class Kind(StrEnum):
    """Which field it is, by the name that people are told."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day of the month"
    MONTH = "month"
    WEEKDAY = "day of the week"
    YEAR = "year"


_BOUNDS = {
    Kind.SECOND: (0, 59),
    Kind.MINUTE: (0, 59),
    Kind.HOUR: (0, 23),
    Kind.DAY: (1, 31),
    Kind.MONTH: (1, 12),
    Kind.WEEKDAY: (0, 6),
    Kind.YEAR: (1970, 2099),
}
# Which fields go round: after December comes January.
_ROUND = {Kind.MONTH: 12, Kind.WEEKDAY: 7}


def bounds(kind: Kind) -> tuple[int, int]:
    """The lowest and the highest value of a field; Sunday is 0."""
    return _BOUNDS[kind]


@dataclass(frozen=True, slots=True)
class Span:
    """From first to last in steps; a weekday or a month goes over the end where the last lies before the first."""

    kind: Kind
    first: int
    last: int
    step: int = 1

    @property
    def size(self) -> int:
        """How many values the range has, whatever the step."""
        return (self.last - self.first) % _ROUND.get(self.kind, 10_000) + 1

    @property
    def values(self) -> tuple[int, ...]:
        """In the order in which they come."""
        low, _ = _BOUNDS[self.kind]
        length = _ROUND.get(self.kind, 10_000)
        return tuple((self.first - low + step) % length + low for step in range(0, self.size, self.step))

    @property
    def is_whole(self) -> bool:
        """Whether the range is all of the field, whatever the step; it begins with the lowest value."""
        low, high = _BOUNDS[self.kind]
        return self.first == low and self.size == high - low + 1


@dataclass(frozen=True, slots=True)
class FromEnd:
    """`L`, `L-3`, `LW`: so many days before the last of the month, or the workday that is nearest to that."""

    back: int
    workday: bool


@dataclass(frozen=True, slots=True)
class Nearest:
    """`15W`: the workday that is nearest to this day, within the month."""

    day: int


@dataclass(frozen=True, slots=True)
class Nth:
    """`1#2`, `FRIL`: the nth of a weekday in the month, -1 for the last."""

    weekday: int
    nth: int


@dataclass(frozen=True, slots=True)
class Spread:
    """`H` without the name that chooses its value."""

    first: int
    last: int
    step: int | None


Item = Span | FromEnd | Nearest | Nth | Spread


@dataclass(frozen=True, slots=True)
class CronField:
    """A field that was read."""

    kind: Kind
    items: tuple[Item, ...]
    starred: bool
    """Whether it begins with `*` (or is `?`): Vixie's sign of a wildcard, also with a step behind it."""

    @property
    def values(self) -> tuple[int, ...]:
        """Its plain values in ascending order."""
        return tuple(sorted({value for item in self.items if isinstance(item, Span) for value in item.values}))

    @property
    def is_any(self) -> bool:
        """Whether it leaves nothing out."""
        low, high = _BOUNDS[self.kind]
        return len(self.values) == high - low + 1

    @property
    def needs_name(self) -> bool:
        return any(isinstance(item, Spread) for item in self.items)


class WrongItem(Exception):
    """An item that cannot be, with what means the same in its place, if anything does (an empty text: nothing was
    meant); `offset` is where it begins in its field."""

    def __init__(self, message: str, right: str | None = None, *, too_long: int | None = None) -> None:
        super().__init__(message)
        self.message, self.right, self.offset = message, right, 0
        self.too_long = too_long
        """The step of a whole field that the field cannot hold."""


def read_field(word: str, kind: Kind, name: str | None = None) -> CronField:
    """The value of one field; the name chooses what `H` stands for."""
    items, offset = [], 0
    for item in word.split(","):
        try:
            items.append(_read_item(item.lower(), kind, name))
        except WrongItem as error:
            error.offset = offset
            raise
        offset += len(item) + 1
    return CronField(kind, tuple(dict.fromkeys(items)), word[0] in "*?")


def _read_item(item: str, kind: Kind, name: str | None) -> Item:
    low, high = _BOUNDS[kind]
    if item == "?" and kind in (Kind.DAY, Kind.WEEKDAY):
        return Span(kind, low, high)
    if re.fullmatch(r"(\d*)~\d*", item):
        raise WrongItem(f"{kind} {item!r}: choose one; a jitter behind the timing spreads the start")
    base, slash, text = item.partition("/")
    special = _special(base, kind)
    if special is not None:
        if slash:
            raise WrongItem(f"{kind} {item!r}: a step needs a range")
        return special
    step = _step(item, text, kind) if slash else None
    if found := _SPREAD.fullmatch(base):
        return _spread(item, kind, (found[1], found[2]), step, name)
    span = _span(item, base, kind, step)
    if span.step > span.size:
        _refuse_step(item, span)
    return span


def _special(base: str, kind: Kind) -> Item | None:
    """What only the day fields have: `L`, `L-3`, `LW`, `15W`; `1#2`, `FRI#2`, `5L`, `FRIL`."""
    if kind is Kind.DAY:
        if found := _FROM_END.fullmatch(base):
            back = int(found[1] or 0)
            if back > 30:
                raise WrongItem(f"{kind} {base!r} lies before every month")
            return FromEnd(back, bool(found[2]))
        if found := re.fullmatch(r"(\d+)w", base):
            return Nearest(_number(base, found[1], kind))
    if kind is Kind.WEEKDAY:
        if found := re.fullmatch(r"(\w+)#(\d{1,4})", base):
            if not 1 <= int(found[2]) <= 5:
                raise WrongItem(f"{kind} {base!r}: a month has a first to fifth one")
            return Nth(_number(base, found[1], kind), int(found[2]))
        if found := re.fullmatch(r"([a-z]{2,}|\d+)l", base):
            return Nth(_number(base, found[1], kind), -1)
        if base == "l":
            raise WrongItem(f"{kind} {base!r}: the last of which weekday?")
    return None


def _step(item: str, text: str, kind: Kind) -> int:
    if not text.isdecimal() or not text.isascii() or len(text) > _MOST_DIGITS or int(text) == 0:
        raise WrongItem(f"{kind} {item!r}: a step must be a number from 1, of {_MOST_DIGITS} digits at most")
    return int(text)


def _span(item: str, base: str, kind: Kind, step: int | None) -> Span:
    low, high = _BOUNDS[kind]
    if base == "*":
        return Span(kind, low, high, step or 1)
    first, dash, last = base.partition("-")
    begin = _number(item, first, kind)
    if not dash:
        # With a step: from there on. A week that does not begin on Sunday ends with it.
        end = 0 if kind is Kind.WEEKDAY and begin else high
        return Span(kind, begin, begin if step is None else end, step or 1)
    end = _number(item, last, kind)
    if kind is Kind.WEEKDAY and first in ("0", "sun", "sunday") and last == "7":
        end = 6  # all week, and not Sunday alone
    if begin > end and kind not in _ROUND:
        raise WrongItem(f"{kind} {item!r} runs backwards", _around(kind, begin, end, step or 1))
    return Span(kind, begin, end, step or 1)


def _around(kind: Kind, begin: int, end: int, step: int) -> str | None:
    """What means the same as a range over the end of its field; none for a step over months, which differ in length."""
    low, high = _BOUNDS[kind]
    if kind is Kind.YEAR or (kind is Kind.DAY and step > 1):
        return None
    if step == 1:
        return f"{begin}-{high}," + (f"{low}-{end}" if end > low else str(end))
    length = high - low + 1
    return ",".join(str((value - low) % length + low) for value in range(begin, end + length + 1, step))


def _refuse_step(item: str, span: Span) -> None:
    """A step that its range cannot hold does nothing but look as if it did."""
    message = f"{span.kind} {item!r}: a step of {span.step} is longer than its range, which begins anew each time"
    if item.startswith("*"):
        raise WrongItem(message, too_long=span.step)
    raise WrongItem(message, item.partition("/")[0].partition("-")[0])


def _spread(item: str, kind: Kind, given: tuple[str | None, str | None], step: int | None, name: str | None) -> Item:
    """`H`: one value of the field, always the same for a name; with a step, where the steps begin."""
    low, high = _BOUNDS[kind]
    if kind is Kind.YEAR:
        raise WrongItem(f"{kind} {item!r} is not understood: {low} to {high}, a list, a range or a step")
    # Every month has these; with a step, the month may be as long as it is.
    first, last = low, 28 if kind is Kind.DAY and step is None else high
    if given[0] is not None and given[1] is not None:
        first, last = _number(item, given[0], kind), _number(item, given[1], kind)
        if first > last:
            raise WrongItem(f"{kind} {item!r} runs backwards", f"H({last}-{first})")
    if step is not None and step > last - first + 1:
        raise WrongItem(f"{kind} {item!r}: a step of {step} is longer than its range")
    if name is None:
        return Spread(first, last, step)
    # Not hash(): that one differs between processes.
    number = int.from_bytes(blake2b(f"{kind}\n{name}".encode(), digest_size=8).digest(), "big")
    chosen = first + number % (last - first + 1 if step is None else step)
    return Span(kind, chosen, chosen) if step is None else Span(kind, chosen, last, step)


def _number(item: str, word: str, kind: Kind) -> int:
    """The number that a word of a field stands for."""
    low, high = _BOUNDS[kind]
    number = int(word) if word.isdecimal() and word.isascii() and len(word) <= _MOST_DIGITS else _names(kind).get(word)
    if number is None:
        right = {"": "", "?": "*"}.get(item)
        raise WrongItem(f"{kind} {item!r} is not understood: {_allowed(kind)}, a list, a range or a step", right)
    if kind is Kind.WEEKDAY and number == 7:
        return 0
    if not low <= number <= high:
        raise WrongItem(f"{kind} {item!r} is out of range: {_allowed(kind)}")
    return number


def _allowed(kind: Kind) -> str:
    low, high = _BOUNDS[kind]
    return "0 to 7 (0 and 7 are Sunday) or mon to sun" if kind is Kind.WEEKDAY else f"{low} to {high}"


@lru_cache(maxsize=8)
def _names(kind: Kind) -> dict[str, int]:
    if kind is Kind.MONTH:
        return _MONTHS
    return _weekday_names() if kind is Kind.WEEKDAY else {}


def _weekday_names() -> dict[str, int]:
    """As in `weekly`, but Sunday is 0."""
    shorts = (*WEEKDAYS, "tues", "weds", "thur", "thurs")
    full = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    return {name: (weekday_numbers(name)[0] + 1) % 7 for name in shorts + full}
