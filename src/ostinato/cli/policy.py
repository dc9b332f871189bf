"""From flags to the policy of a schedule, and to the lanes of an engine. Pure; `work.py` is the same for its work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field as flag
from dataclasses import make_dataclass
from datetime import timedelta
from enum import EnumType
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import Group, Parameter

from ostinato.cli.options import Text
from ostinato.cli.work import NOTHING, as_command, whole
from ostinato.durations import duration_text
from ostinato.errors import InvalidInput
from ostinato.models.installed_kinds import installed_kinds
from ostinato.models.policy_fields import POLICIES, PolicyField
from ostinato.models.policy_values import Budget, Gate, Keep, Retry

__all__ = [
    "NO_POLICY",
    "PolicyFlags",
    "budget_option",
    "gate_option",
    "lane_limits",
    "lane_rates",
    "limit_option",
    "policy_options",
    "retry_option",
    "with_policy_flags",
]

T = TypeVar("T")

_BUDGET = {part.name: part for part in POLICIES["budget"].parts}


def with_policy_flags(
    *, without: Collection[str] = (), defaults: Mapping[str, str] = MappingProxyType({})
) -> Callable[[type[T]], type[T]]:
    """Give a class the flags of each policy of the table, but for some, and with what some are without a flag."""

    def with_flags(cls: type[T]) -> type[T]:
        flags = [
            (name, kind, flag(default=None, metadata={"help": help})) for name, kind, help in _flags(without, defaults)
        ]
        about = {"__doc__": cls.__doc__, "__module__": cls.__module__}
        return make_dataclass(cls.__name__, flags, bases=(cls,), frozen=True, namespace=about)

    return with_flags


def _flags(without: Collection[str], defaults: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    """The name, type and help of each flag."""
    for field in POLICIES.values():
        if field.name in without:
            continue
        if field.name == "remaining":
            yield "once", Annotated[bool | None, Parameter(negative=())], "Run once, then it is finished."
        yield _flag(field), _type(field), _help(field, defaults.get(field.name))
        if field.type is Gate:
            timeout = field.parts[1]
            yield "gate_timeout", str | None, _help(timeout)


def _flag(field: PolicyField) -> str:
    return field.about.flag or field.name


def _type(field: PolicyField) -> Any:
    """What is written for it; 'none' may be written for what may be None, so that is text."""
    if isinstance(field.type, EnumType):
        return Literal[tuple(map(str, field.type))] | None
    if field.type is bool:
        return Annotated[bool | None, Parameter(negative=f"--no-{_flag(field).replace('_', '-')}")]
    if isinstance(field.default, tuple):
        return list[str] | None
    return Text if field.type is Gate else str | None


def _help(field: PolicyField, default: str | None = None) -> str:
    again = "; may be given again" if isinstance(field.default, tuple) else ""
    help = f"{field.about.help.removesuffix('.')}{field.about.written}{again}."
    return help if again or field.type is bool else f"{help} [default: {default or _default(field)}]"


def _default(field: PolicyField) -> str:
    """What holds without the flag, as it would be written."""
    match field.default:
        case None if field.about.is_of_kind:
            own = {kind.name: getattr(kind, field.name) for kind in installed_kinds().values()}
            limits = {name: limit for name, limit in own.items() if limit is not None}
            return ", ".join(f"{kind} {limit}" for kind, limit in {**limits, "task": NOTHING}.items())
        case None:
            return NOTHING
        case timedelta():
            return duration_text(field.default)
        case Retry(max=most):
            kinds = [f"{name} {own.max},covers={own.covers}" for name, own in _retries().items()]
            return "; ".join([str(most), *kinds])
        case Keep(age=timedelta() as age, count=count):
            return f"{duration_text(age)},{count}"
        case _:
            return str(field.default)


def _retries() -> dict[str, Retry]:
    """The kinds of work that come with another retry."""
    return {kind.name: kind.retry for kind in installed_kinds().values() if kind.retry is not None}


@Parameter(name="*", group=Group("Policy", sort_key=6))
@with_policy_flags()
class PolicyFlags:
    """How to treat a schedule and its runs; 'none' takes a limit away."""


NO_POLICY = PolicyFlags()


def policy_options(flags: object, gate: Gate | None = None) -> dict[str, Any]:
    """The policy fields that were given, and only those. `flags` is what `with_policy_flags` made, `gate` the one that
    is there already."""
    given = vars(flags)
    options = {
        name: _read(field, value)
        for name, field in POLICIES.items()
        if field.type is not Gate and (value := given.get(_flag(field))) is not None
    }
    options |= gate_option(given["gate"], given["gate_timeout"], gate)
    if given.get("once"):
        if "remaining" in options:
            raise InvalidInput("give either --once or --remaining, not both", field="once")
        options["remaining"] = 1
    return options


def _read(field: PolicyField, given: Any) -> Any:
    """What was written for it, as a policy takes it."""
    if field.type in _READERS:
        return _READERS[field.type](given)
    if given == [NOTHING]:
        return []
    if given == NOTHING and field.is_nullable:
        return None
    return whole(field.name, given) if field.type is int else given


def limit_option(name: str, limit: str | None) -> dict[str, Any]:
    """A limit that 'none' takes away."""
    return {} if limit is None else {name: None if limit == NOTHING else limit}


def gate_option(command: str | None, timeout: str | None, gate: Gate | None = None) -> dict[str, Any]:
    """The gate, from its command and timeout; what is not given stays as it is."""
    if command is None and timeout is None:
        return {}
    if command == NOTHING:
        return {"gate": None}
    if command is None and gate is None:
        raise InvalidInput("--gate-timeout needs a gate", field="gate", hint="give its command with --gate")
    fields: dict[str, Any] = {} if gate is None else {"command": gate.command, "timeout": gate.timeout}
    if command is not None:
        fields["command"] = as_command(command)
    if timeout is not None:
        fields["timeout"] = timeout
    return {"gate": fields}


def budget_option(text: str) -> dict[str, Any] | None:
    """`per_run_usd=1,per_day_usd=5,per_day_runs=20`, or none."""
    if text == NOTHING:
        return None
    fields: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in _BUDGET:
            hint = "write per_run_usd=1,per_day_usd=5,per_day_runs=20, or none"
            raise InvalidInput(f"budget cannot be {text!r}", field="budget", hint=hint)
        if value == NOTHING:
            fields[name] = None
        else:
            read = whole if _BUDGET[name].type is int else _number
            fields[name] = read(f"budget.{name}", value)
    return fields


def retry_option(text: str | None) -> dict[str, Any]:
    """`5`, or `5,base=1s,longest=1m,spread=0.1,covers=start,on=TimeoutError,on=OSError,never=ValueError`."""
    return {} if text is None else {"retry": _retry(text)}


def _retry(text: str) -> int | dict[str, Any]:
    most, *rest = text.split(",")
    if not rest:
        return whole("retry", most)
    fields: dict[str, Any] = {"max": whole("retry", most)}
    for part in rest:
        name, equals, value = part.strip().partition("=")
        if not equals or name not in ("base", "longest", "spread", "covers", "on", "never"):
            raise InvalidInput(f"retry cannot be {text!r}", field="retry", hint="write 5, or 5,base=1s,longest=1m")
        if name in ("on", "never"):
            fields[name] = [*fields.get(name, ()), value]
        else:
            fields[name] = _number("retry.spread", value) if name == "spread" else value
    return fields


def _keep(text: str) -> dict[str, Any]:
    """`30d` is an age, `1000` a count, `none` no bound at all; what is not named keeps its default."""
    if text == NOTHING:
        return {"age": None, "count": None}
    fields: dict[str, Any] = {}
    for part in text.split(","):
        if part.strip().isdecimal():
            fields["count"] = int(part)
        else:
            fields["age"] = part.strip()
    return fields


def _number(field: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{field} cannot be {text!r}", field=field, hint="give a number") from None


_READERS: dict[Any, Callable[[str], Any]] = {Retry: _retry, Keep: _keep, Budget: budget_option}
"""Of values with parts."""


def lane_limits(pairs: list[str] | None) -> dict[str, int] | None:
    """The limits of `--lane main=10`."""
    limits = _of_lanes("lane", "main=10", pairs, lambda limit: limit.isdecimal() and int(limit) >= 1)
    return None if limits is None else {name: int(limit) for name, limit in limits.items()}


def lane_rates(pairs: list[str] | None) -> dict[str, str] | None:
    """The rates of `--rate main=10/m`, not yet read."""
    return _of_lanes("rate", "main=10/m", pairs, bool)


def _of_lanes(
    flag: str, example: str, pairs: list[str] | None, is_good: Callable[[str], bool]
) -> dict[str, str] | None:
    """What was given for each lane, as NAME=VALUE."""
    if pairs is None:
        return None
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name or not is_good(value):
            raise InvalidInput(f"--{flag} cannot be {pair!r}", field=flag, hint=f"write --{flag} {example}")
        found[name] = value
    return found
