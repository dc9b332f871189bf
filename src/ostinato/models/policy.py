"""How to treat a schedule and its runs: overlap, catch-up, retry, timeout, breaker, lane and the rest.

One frozen value with defaults; stored as JSON that holds only what differs from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from ostinato.durations import Duration, duration_text, parse_duration
from ostinato.errors import InvalidInput, NotLoadable
from ostinato.models.budget import Budget
from ostinato.models.work_checks import check_command

__all__ = [
    "CatchUp",
    "Gate",
    "Keep",
    "OnLostLease",
    "Overlap",
    "Policy",
    "Retry",
    "check_choice",
    "check_key",
    "check_session",
    "check_whole",
    "load_policy",
    "make_policy",
    "policy_json",
    "policy_text",
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


MOST = 2**31 - 1
"""The greatest whole number that is taken: enough for everything, and every database holds it."""


def check_whole(name: str, value: Any, least: int) -> int:
    """A whole number that is neither too small nor too great."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=f"give a whole number from {least}")
    return value


@dataclass(frozen=True, slots=True, init=False)
class Retry:
    """`max` more attempts; the delay before the n-th is min(base * 2^(n-1), longest), give or take `spread`."""

    max: int
    base: timedelta
    longest: timedelta
    spread: float

    def __init__(
        self,
        max: int = 3,
        base: Duration = timedelta(seconds=2),
        longest: Duration = timedelta(seconds=30),
        spread: float = 0.25,
    ) -> None:
        if isinstance(spread, bool) or not isinstance(spread, (int, float)) or not 0 <= spread <= 1:
            raise InvalidInput(f"retry.spread cannot be {spread!r}", field="retry.spread", hint="give 0 to 1")
        object.__setattr__(self, "max", check_whole("retry.max", max, 0))
        object.__setattr__(self, "base", parse_duration(base, field="retry.base"))
        object.__setattr__(self, "longest", parse_duration(longest, field="retry.longest"))
        object.__setattr__(self, "spread", spread)


@dataclass(frozen=True, slots=True, init=False)
class Keep:
    """How long ended runs stay: at most this old and at most so many for each schedule; None is no bound."""

    age: timedelta | None
    count: int | None

    def __init__(self, age: Duration | None = timedelta(days=30), count: int | None = 1000) -> None:
        object.__setattr__(self, "age", None if age is None else parse_duration(age, field="keep.age"))
        object.__setattr__(self, "count", None if count is None else check_whole("keep.count", count, 1))


@dataclass(frozen=True, slots=True, init=False)
class Gate:
    """A command that runs before the work and says, as JSON on its last line, whether there is anything to do."""

    command: str | tuple[str, ...]
    timeout: timedelta

    def __init__(self, command: str | Iterable[str], timeout: Duration = timedelta(seconds=30)) -> None:
        held = command if isinstance(command, str) else tuple(command)
        check_command(held, "gate")
        object.__setattr__(self, "command", held)
        object.__setattr__(self, "timeout", _positive_duration("gate.timeout", timeout))


@dataclass(frozen=True, slots=True)
class Policy:
    """The defaults are those of docs/reference; each field is explained there."""

    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_window: timedelta = timedelta(hours=24)
    catch_up_cap: int = 1000
    retry: Retry = Retry()
    timeout: timedelta | None = None
    max_age: timedelta | None = None
    break_after: int = 3
    lane: str = "cron"
    priority: int = 0
    session: str | None = None
    checks: tuple[str, ...] = ()
    gate: Gate | None = None
    budget: Budget | None = None
    notify: tuple[str, ...] = ()
    keep: Keep = Keep()
    remaining: int | None = None
    delete_after_run: bool = False
    on_lost_lease: OnLostLease = OnLostLease.STOP


DEFAULT = Policy()
_NAMES = frozenset(field.name for field in fields(Policy))


def make_policy(given: Mapping[str, Any], base: Policy = DEFAULT) -> Policy:
    """`base` with the given fields, in any form that users write; a wrong one is an InvalidInput with its name."""
    if not given:
        return base
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if name == "run_once":
            if not isinstance(value, bool):
                raise InvalidInput(f"run_once cannot be {value!r}", field=name, hint="give True or False")
            changes["remaining"] = 1 if value else None
        elif name not in _NAMES:
            known = ", ".join(sorted(_NAMES | {"run_once"}))
            raise InvalidInput(f"there is no policy {name!r}", field=name, hint=f"the policies are {known}")
        else:
            changes[name] = _coerce(name, value, base)
    return replace(base, **changes)


def _coerce(name: str, value: Any, base: Policy) -> Any:
    match name:
        case "overlap":
            return check_choice(Overlap, name, value)
        case "catch_up":
            return check_choice(CatchUp, name, value)
        case "on_lost_lease":
            return check_choice(OnLostLease, name, value)
        case "retry":
            return _retry(value, base.retry)
        case "keep":
            return _keep(value, base.keep)
        case "catch_up_window":
            return parse_duration(value, field=name)
        case "timeout" | "max_age":
            return None if value is None else _positive_duration(name, value)
        case "checks" | "notify":
            return _names(name, value)
        case "gate":
            return None if value is None else _gate(value)
        case "budget":
            return None if value is None else _budget(value, base.budget)
        case "lane":
            return check_key(value, "lane", "give the name of a lane, such as main")
        case "session":
            return None if value is None else check_session(value)
        case "delete_after_run":
            if not isinstance(value, bool):
                raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="give True or False")
            return value
        case "priority":
            return check_whole(name, value, -1_000_000)
        case "remaining":
            return None if value is None else check_whole(name, value, 1)
        case _:
            return check_whole(name, value, 1)


def check_choice(kind: type[E], name: str, value: Any) -> E:
    """One of the words of an enum; InvalidInput lists them."""
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(kind)
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=f"it is one of {choices}") from None


def _positive_duration(name: str, value: Duration) -> timedelta:
    result = parse_duration(value, field=name)
    if not result:
        raise InvalidInput(
            f"{name} cannot be zero", field=name, hint="give a duration such as 30s, or none for no limit"
        )
    return result


def _names(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    names = tuple(value) if isinstance(value, Iterable) else ()
    if not isinstance(value, Iterable) or not all(
        isinstance(item, str) and item.isprintable() and item for item in names
    ):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="give a list of names")
    return names


def check_key(value: Any, field: str, hint: str) -> str:
    """A name that people give to one thing: text of 1 to 200 characters that can be printed."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidInput(f"{field} cannot be {value!r}", field=field, hint=hint)
    if len(value) > 200:
        raise InvalidInput(f"{field} has {len(value)} characters", field=field, hint="200 is the most")
    return value


def check_session(value: Any, field: str = "session") -> str:
    """A session's key; `schedule:` in front is the house's own."""
    key = check_key(value, field, "give a key such as dm:42")
    if key.startswith("schedule:"):
        raise InvalidInput(f"{field} cannot be {key!r}", field=field, hint="schedule: is used by the scheduler itself")
    return key


def _retry(value: Any, base: Retry) -> Retry:
    if isinstance(value, Retry):
        return value
    if isinstance(value, Mapping):
        try:
            return replace(base, **value)
        except TypeError as error:
            raise InvalidInput(
                f"retry cannot be {value!r}", field="retry", hint="its fields are max, base, longest, spread"
            ) from error
    return replace(base, max=check_whole("retry", value, 0))


def _keep(value: Any, base: Keep) -> Keep:
    if isinstance(value, Keep):
        return value
    if isinstance(value, Mapping):
        try:
            return replace(base, **value)
        except TypeError as error:
            raise InvalidInput(f"keep cannot be {value!r}", field="keep", hint="its fields are age, count") from error
    return replace(base, age=parse_duration(value, field="keep"))


def _gate(value: Any) -> Gate:
    if isinstance(value, Gate):
        return value
    try:
        return Gate(**value) if isinstance(value, Mapping) else Gate(value)
    except TypeError as error:
        hint = "give a command, or its fields, command and timeout"
        raise InvalidInput(f"gate cannot be {value!r}", field="gate", hint=hint) from error


def _budget(value: Any, base: Budget | None) -> Budget:
    if isinstance(value, Budget):
        return value
    try:
        return Budget(**value) if base is None else replace(base, **value)
    except TypeError as error:
        hint = "its fields are per_run_usd, per_day_usd, per_day_runs"
        raise InvalidInput(f"budget cannot be {value!r}", field="budget", hint=hint) from error


def policy_json(policy: Policy) -> dict[str, Any]:
    """Every field as scripts see it; durations are text."""
    return {field.name: _plain(getattr(policy, field.name)) for field in fields(Policy)}


def _plain(value: Any) -> Any:
    match value:
        case timedelta():
            return duration_text(value)
        case StrEnum():
            return str(value)
        case tuple():
            return list(value)
        case Retry() | Keep() | Gate() | Budget():
            return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value


@lru_cache(maxsize=1024)
def policy_text(policy: Policy) -> str:
    """The JSON text that is stored: only what differs from the defaults, so that most rows say `{}`."""
    given = {
        field.name: _plain(value)
        for field in fields(Policy)
        if (value := getattr(policy, field.name)) != getattr(DEFAULT, field.name)
    }
    return msgspec.json.encode(given).decode()


@lru_cache(maxsize=4096)
def load_policy(text: str) -> Policy:
    """The policy of a stored text; NotLoadable when it says what this program does not know."""
    try:
        given = msgspec.json.decode(text, type=dict[str, Any])
        return make_policy(given)
    except (msgspec.DecodeError, InvalidInput) as error:
        raise NotLoadable(f"its policy is not readable: {error}") from error
