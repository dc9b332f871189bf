"""From flags to the policy of a schedule, and to the lanes of an engine. Pure; `work.py` is the same for its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.cli.options import PolicyFlags
from ostinato.cli.work import NOTHING, as_command, whole
from ostinato.errors import InvalidInput

if TYPE_CHECKING:
    from ostinato.models.policy import Gate

__all__ = [
    "budget_option",
    "gate_option",
    "lane_limits",
    "lane_rates",
    "limit_option",
    "policy_options",
    "retry_option",
]

_BUDGET = {"per_run_usd": float, "per_day_usd": float, "per_day_runs": int}


def policy_options(flags: PolicyFlags, gate: Gate | None = None) -> dict[str, Any]:
    """The policy fields that were given, and only those. `gate` is the one that is there already."""
    plain = {
        "overlap": flags.overlap,
        "catch_up": flags.catch_up,
        "catch_up_window": flags.catch_up_window,
        "catch_up_cap": flags.catch_up_cap,
        "break_after": flags.break_after,
        "lane": flags.lane,
        "priority": flags.priority,
        "checks": _names(flags.check),
        "notify": _names(flags.notify),
        "delete_after_run": flags.delete_after_run,
        "on_lost_lease": flags.on_lost_lease,
    }
    options: dict[str, Any] = {name: value for name, value in plain.items() if value is not None}
    for name, limit in (("timeout", flags.timeout), ("max_age", flags.max_age), ("session", flags.session)):
        options |= limit_option(name, limit)
    options |= retry_option(flags.retry)
    options |= gate_option(flags.gate, flags.gate_timeout, gate)
    if flags.budget is not None:
        options["budget"] = None if flags.budget == NOTHING else budget_option(flags.budget)
    if flags.keep is not None:
        options["keep"] = _keep(flags.keep)
    if flags.remaining is not None:
        options["remaining"] = None if flags.remaining == NOTHING else whole("remaining", flags.remaining)
    if flags.once:
        if flags.remaining is not None:
            raise InvalidInput("give either --once or --remaining, not both", field="once")
        options["remaining"] = 1
    return options


def limit_option(name: str, limit: str | None) -> dict[str, Any]:
    """A limit that 'none' takes away."""
    return {} if limit is None else {name: None if limit == NOTHING else limit}


def _names(given: list[str] | None) -> list[str] | None:
    return [] if given == [NOTHING] else given


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


def budget_option(text: str) -> dict[str, Any]:
    """`per_run_usd=1,per_day_usd=5,per_day_runs=20`."""
    fields: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in _BUDGET:
            hint = "write per_run_usd=1,per_day_usd=5,per_day_runs=20, or none"
            raise InvalidInput(f"budget cannot be {text!r}", field="budget", hint=hint)
        if value == NOTHING:
            fields[name] = None
        else:
            read = whole if _BUDGET[name] is int else _number
            fields[name] = read(f"budget.{name}", value)
    return fields


def retry_option(text: str | None) -> dict[str, Any]:
    """`5`, or `5,base=1s,longest=1m,spread=0.1`."""
    return {} if text is None else {"retry": _retry(text)}


def _retry(text: str) -> int | dict[str, Any]:
    most, *rest = text.split(",")
    if not rest:
        return whole("retry", most)
    fields: dict[str, Any] = {"max": whole("retry", most)}
    for part in rest:
        name, equals, value = part.strip().partition("=")
        if not equals or name not in ("base", "longest", "spread"):
            raise InvalidInput(f"retry cannot be {text!r}", field="retry", hint="write 5, or 5,base=1s,longest=1m")
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


def lane_limits(pairs: list[str] | None) -> dict[str, int] | None:
    """The limits of `--lane main=10`."""
    if pairs is None:
        return None
    limits = {}
    for pair in pairs:
        name, equals, limit = pair.partition("=")
        if not equals or not name or not limit.isdecimal() or int(limit) < 1:
            raise InvalidInput(f"--lane cannot be {pair!r}", field="lane", hint="write --lane main=10")
        limits[name] = int(limit)
    return limits


def lane_rates(pairs: list[str] | None) -> dict[str, str] | None:
    """The rates of `--rate main=10/m`, not yet read."""
    if pairs is None:
        return None
    rates = {}
    for pair in pairs:
        name, equals, rate = pair.partition("=")
        if not equals or not name or not rate:
            raise InvalidInput(f"--rate cannot be {pair!r}", field="rate", hint="write --rate main=10/m")
        rates[name] = rate
    return rates
