"""The values of a policy: enums, and Retry, Keep, Gate and Budget, each with a word about its parts. The table of
`policy_fields.py` is made of them. Both import nothing heavy, so that the command line prints its help in no time.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidInput
from ostinato.models.channel_url import HIDDEN
from ostinato.models.work_checks import check_command, check_url

__all__ = [
    "MOST",
    "MOST_USD",
    "About",
    "Budget",
    "CatchUp",
    "Covers",
    "Gate",
    "Group",
    "Keep",
    "OnLostLease",
    "Overlap",
    "Retry",
    "check_choice",
    "check_key",
    "check_ping_url",
    "check_session",
    "check_whole",
    "exception_name",
    "positive_duration",
]

E = TypeVar("E", bound=StrEnum)


class Overlap(StrEnum):
    """What to do with a due time whose schedule still has a run under way."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"
    CANCEL_RUNNING = "cancel_running"
    ALLOW = "allow"


class CatchUp(StrEnum):
    """Which due times of a downtime are run afterwards."""

    NONE = "none"
    LATEST = "latest"
    ALL = "all"


class OnLostLease(StrEnum):
    """What becomes of running work when its node cannot renew its lease."""

    STOP = "stop"
    CONTINUE = "continue"


class Covers(StrEnum):
    """Which failures of a run are tried again."""

    ALL = "all"
    START = "start"


Exceptions = Iterable[type[BaseException] | str] | type[BaseException] | str
"""Some exceptions, or one: classes, or their names as `httpx.ConnectError`."""

MOST = 2**31 - 1
"""The greatest whole number that is taken: enough for everything, and every database holds it."""

MOST_USD = 1_000_000
"""The most that a budget may have."""


def check_whole(name: str, value: Any, least: int) -> int:
    """A whole number that is neither too small nor too great."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise InvalidInput(
            f"{name} cannot be {value!r}", field=name, hint=f"give a whole number from {least} to {MOST}"
        )
    return value


def check_choice(kind: type[E], name: str, value: Any) -> E:
    """One of the words of an enum; InvalidInput lists them."""
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(kind)
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=f"it is one of {choices}") from None


def check_key(value: Any, field: str, hint: str) -> str:
    """A name that people give to one thing: text of 1 to 200 characters that can be printed."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidInput(f"{field} cannot be {value!r}", field=field, hint=hint)
    if len(value) > 200:
        raise InvalidInput(f"{field} has {len(value)} characters", field=field, hint="200 is the most")
    return value


def check_session(value: Any, field: str = "session") -> str:
    """A session's key; `schedule:` in front is ours."""
    key = check_key(value, field, "give a key such as dm:42")
    if key.startswith("schedule:"):
        raise InvalidInput(f"{field} cannot be {key!r}", field=field, hint="schedule: is reserved for the scheduler")
    return key


def check_ping_url(value: Any) -> str:
    """An address, or a reference to one."""
    if isinstance(value, str) and HIDDEN in value:
        raise InvalidInput(
            f"ping_url has {HIDDEN}, which stands for what was not shown",
            field="ping_url",
            hint="give the whole address, or leave it out to keep it as it is",
        )
    if not isinstance(value, str) or not re.fullmatch(r"(env|file):\S.*", value):
        try:
            check_url(value)
        except InvalidInput as error:
            raise InvalidInput(
                "ping_url is not an address that can be called",
                field="ping_url",
                hint="such as https://hc-ping.com/KEY, or env:NAME",
            ) from error
    return str(value)


def positive_duration(name: str, value: Duration) -> timedelta:
    """A duration that is not zero."""
    result = parse_duration(value, field=name)
    if not result:
        raise InvalidInput(
            f"{name} cannot be zero", field=name, hint="give a duration such as 30s, or none for no limit"
        )
    return result


class Group(StrEnum):
    """The groups of the page's form."""

    DUE = "When it is due"
    FAILURE = "When it fails"
    WAITING = "Where it waits"
    BEFORE = "Before it runs"
    COST = "What it may cost"
    TOLD = "Who is told"
    AFTER = "What stays"


@dataclass(frozen=True, slots=True)
class About:
    """What the table says of a policy beside its name, type and default."""

    label: str
    """What the page calls it."""
    help: str
    """A sentence that says what it is, the same at every door."""
    group: Group | None = None
    """Where it stands in the page's form; None: nowhere."""
    least: int = 1
    """Of a whole number."""
    hint: str = "give text"
    """What is said to who gives something else as its text."""
    flag: str = ""
    """The name of its flag at the command line, where that is another."""
    written: str = ""
    """What the command line adds to the sentence: how it is written there."""
    choices: Mapping[str, str] = field(default_factory=dict)
    """A few words for each value of an enum."""
    says: Mapping[Any, str] = field(default_factory=dict)
    """A sentence for some values, and behind `...` one for all others, with {} in the value's place."""
    secret: bool = False
    """Whether its value may be a secret: an admin sees it, others only where it is a reference."""
    is_of_kind: bool = False
    """Whether kinds of work have their own default."""


@dataclass(frozen=True, slots=True, init=False)
class Retry:
    """`max` more attempts; the delay before the n-th is min(base * 2^(n-1), longest), give or take `spread`.

    With `covers="start"` they are only for what failed before the work began, so that nothing is done twice.
    """

    max: Annotated[int, About("Retry", "How many more attempts a failed run gets.", Group.FAILURE, least=0)]
    base: Annotated[timedelta, About("First delay", "Before the second attempt; it doubles each time.", Group.FAILURE)]
    longest: Annotated[timedelta, About("Longest delay", "The delay between attempts grows up to this.", Group.FAILURE)]
    spread: Annotated[float, About("Spread", "The share of each delay that is random.")]
    covers: Annotated[
        Covers,
        About(
            "Covers",
            "Which failures are tried again: all, or only those before the work began (start).",
            choices={"all": "every failure", "start": "only before the work began"},
        ),
    ]
    on: Annotated[
        tuple[str, ...],
        About("Only on", "Of the exceptions that a function raises only these are tried again; empty: all."),
    ]
    never: Annotated[tuple[str, ...], About("Never on", "The exceptions that are never tried again.")]

    def __init__(
        self,
        max: int = 3,
        base: Duration = timedelta(seconds=2),
        longest: Duration = timedelta(seconds=30),
        spread: float = 0.25,
        covers: Covers | Literal["all", "start"] = Covers.ALL,
        on: Exceptions = (),
        never: Exceptions = (),
    ) -> None:
        if isinstance(spread, bool) or not isinstance(spread, (int, float)) or not 0 <= spread <= 1:
            raise InvalidInput(f"retry.spread cannot be {spread!r}", field="retry.spread", hint="give 0 to 1")
        object.__setattr__(self, "max", check_whole("retry.max", max, 0))
        object.__setattr__(self, "base", parse_duration(base, field="retry.base"))
        object.__setattr__(self, "longest", parse_duration(longest, field="retry.longest"))
        object.__setattr__(self, "spread", spread)
        object.__setattr__(self, "covers", check_choice(Covers, "retry.covers", covers))
        object.__setattr__(self, "on", _exception_names("retry.on", on))
        object.__setattr__(self, "never", _exception_names("retry.never", never))

    @property
    def judges(self) -> bool:
        """Whether it asks what was raised."""
        return bool(self.on or self.never)

    def allows(self, raised: Sequence[str]) -> bool:
        """Whether an exception is tried again: the names of its class and of those that it inherits from."""
        if not raised:
            return True  # nothing was raised: its node was lost, it took too long
        return not any(name in raised for name in self.never) and (
            not self.on or any(name in raised for name in self.on)
        )


def exception_name(kind: type[BaseException]) -> str:
    """As a policy is stored with it: of a builtin its name, else the module too."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


_NAME = re.compile(r"[^\W\d]\w*|<locals>")


def _exception_names(field: str, given: Exceptions) -> tuple[str, ...]:
    some = [given] if isinstance(given, (str, type)) else given
    names = [exception_name(one) if isinstance(one, type) and issubclass(one, BaseException) else one for one in some]
    for name in names:
        if not isinstance(name, str) or not all(map(_NAME.fullmatch, name.split("."))):
            raise InvalidInput(
                f"{field} cannot be {name!r}",
                field=field,
                hint="give exceptions: TimeoutError, or by name as httpx.ConnectError",
            )
    return tuple(dict.fromkeys(map(_builtin_name, names)))


def _builtin_name(name: str) -> str:
    """The name by which an exception is known when it is raised: of a builtin its own, without its module."""
    found = getattr(builtins, name.removeprefix("builtins."), None)
    return exception_name(found) if isinstance(found, type) and issubclass(found, BaseException) else name


@dataclass(frozen=True, slots=True, init=False)
class Keep:
    """How long ended runs are kept: at most this old and at most this many for each schedule; None means no limit."""

    age: Annotated[timedelta | None, About("Keep for", "Ended runs are removed after this.", Group.AFTER)]
    count: Annotated[int | None, About("Keep at most", "This many ended runs are kept.", Group.AFTER)]

    def __init__(self, age: Duration | None = timedelta(days=30), count: int | None = 1000) -> None:
        object.__setattr__(self, "age", None if age is None else parse_duration(age, field="keep.age"))
        object.__setattr__(self, "count", None if count is None else check_whole("keep.count", count, 1))


@dataclass(frozen=True, slots=True, init=False)
class Gate:
    """A command that runs before the work and says, as JSON on its last line, whether there is anything to do."""

    command: Annotated[
        str | tuple[str, ...],
        About(
            "Gate",
            "A command whose last line says, as JSON, whether there is anything to do. Only an admin may set it.",
            Group.BEFORE,
        ),
    ]
    timeout: Annotated[timedelta, About("Gate timeout", "How long the gate may take.", Group.BEFORE)]

    def __init__(self, command: str | Iterable[str], timeout: Duration = timedelta(seconds=30)) -> None:
        held = command if isinstance(command, str) else tuple(command)
        check_command(held, "gate")
        object.__setattr__(self, "command", held)
        object.__setattr__(self, "timeout", positive_duration("gate.timeout", timeout))


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on what the runs of a schedule cost; None means no limit. Days are those of the schedule's zone.

    `per_run_usd` is reserved when a run starts (an agent is told to stay below it); without it, a run reserves all
    that is left of the day.
    """

    per_run_usd: Annotated[float | None, About("Dollars a run", "The most that one run may cost.", Group.COST)] = None
    per_day_usd: Annotated[
        float | None, About("Dollars a day", "Reaching it pauses the schedule until tomorrow.", Group.COST)
    ] = None
    per_day_runs: Annotated[
        int | None, About("Runs a day", "The most runs that start in one day of its zone.", Group.COST)
    ] = None

    def __post_init__(self) -> None:
        for name in ("per_run_usd", "per_day_usd"):
            _check_money(name, getattr(self, name))
        runs = self.per_day_runs
        if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int) or not 1 <= runs <= MOST):
            raise InvalidInput(
                f"budget.per_day_runs cannot be {runs!r}",
                field="budget.per_day_runs",
                hint=f"give a whole number from 1 to {MOST}",
            )
        if self.per_run_usd is None and self.per_day_usd is None and runs is None:
            raise InvalidInput(
                "an empty budget limits nothing", field="budget", hint="give per_run_usd, per_day_usd or per_day_runs"
            )
        if self.per_run_usd is not None and self.per_day_usd is not None and self.per_run_usd > self.per_day_usd:
            raise InvalidInput(
                f"a run may cost {self.per_run_usd:g} but a day only {self.per_day_usd:g}: none would ever start",
                field="budget",
                hint="make per_run_usd the smaller one",
            )


def _check_money(name: str, value: Any) -> None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.000_001 <= value <= MOST_USD
    ):
        field = f"budget.{name}"
        raise InvalidInput(f"{field} cannot be {value!r}", field=field, hint="give dollars, such as 0.5")
