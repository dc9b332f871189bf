"""From flags to what a schedule takes: its policy, and the arguments of its task. Pure."""

from __future__ import annotations

import json
from typing import Any

from ostinato.cli.options import PolicyFlags
from ostinato.errors import InvalidInput

__all__ = ["call_arguments", "json_or_text", "lane_limits", "lane_rates", "policy_options"]

_NOTHING = "none"


def policy_options(flags: PolicyFlags) -> dict[str, Any]:
    """The policy fields that were given, and only those."""
    plain = {
        "overlap": flags.overlap,
        "catch_up": flags.catch_up,
        "catch_up_window": flags.catch_up_window,
        "catch_up_cap": flags.catch_up_cap,
        "break_after": flags.break_after,
        "lane": flags.lane,
        "priority": flags.priority,
        "checks": flags.check,
        "delete_after_run": flags.delete_after_run,
    }
    options: dict[str, Any] = {name: value for name, value in plain.items() if value is not None}
    for name, limit in (("timeout", flags.timeout), ("max_age", flags.max_age), ("session", flags.session)):
        if limit is not None:
            options[name] = None if limit == _NOTHING else limit
    if flags.retry is not None:
        options["retry"] = _retry(flags.retry)
    if flags.keep is not None:
        options["keep"] = _keep(flags.keep)
    if flags.remaining is not None:
        options["remaining"] = None if flags.remaining == _NOTHING else _whole("remaining", flags.remaining)
    if flags.once:
        if flags.remaining is not None:
            raise InvalidInput("give either --once or --remaining, not both", field="once")
        options["remaining"] = 1
    return options


def _retry(text: str) -> int | dict[str, Any]:
    """`5`, or `5,base=1s,longest=1m,spread=0.1`."""
    most, *rest = text.split(",")
    if not rest:
        return _whole("retry", most)
    fields: dict[str, Any] = {"max": _whole("retry", most)}
    for part in rest:
        name, equals, value = part.strip().partition("=")
        if not equals or name not in ("base", "longest", "spread"):
            raise InvalidInput(f"retry cannot be {text!r}", field="retry", hint="write 5, or 5,base=1s,longest=1m")
        fields[name] = _number("retry.spread", value) if name == "spread" else value
    return fields


def _keep(text: str) -> dict[str, Any]:
    """`30d` is an age, `1000` a count, `none` no bound at all; what is not named keeps its default."""
    if text == _NOTHING:
        return {"age": None, "count": None}
    fields: dict[str, Any] = {}
    for part in text.split(","):
        if part.strip().isdecimal():
            fields["count"] = int(part)
        else:
            fields["age"] = part.strip()
    return fields


def _whole(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{field} cannot be {text!r}", field=field, hint="give a whole number") from None


def _number(field: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{field} cannot be {text!r}", field=field, hint="give a number") from None


def call_arguments(args: str | None, kwargs: str | None, named: list[str] | None) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a task, from `--args '[1]'`, `--kwargs '{"a": 1}'` and `--arg a=1`."""
    positional = _json("args", args, list, '[1, "two"]') if args is not None else []
    keywords = _json("kwargs", kwargs, dict, '{"name": "value"}') if kwargs is not None else {}
    for pair in named or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput(f"--arg cannot be {pair!r}", field="arg", hint="write --arg name=value")
        keywords[name] = json_or_text(value)
    return positional, keywords


def json_or_text(text: str) -> Any:
    """JSON where it is JSON (`3`, `true`, `[1]`), else the text itself."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    """Python would take `NaN` and `Infinity` for numbers, but they are not JSON."""
    raise ValueError(name)


def _json(field: str, text: str, kind: type, example: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput(
            f"--{field} is not JSON: {error}", field=field, hint=f"write --{field} '{example}'"
        ) from None
    if not isinstance(value, kind):
        raise InvalidInput(f"--{field} cannot be {text}", field=field, hint=f"write --{field} '{example}'")
    return value


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
