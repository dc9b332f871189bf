"""How many of what, as a person says it. For every text that counts: logs, reasons, errors and what commands print."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["a_or_an", "amount", "counted", "errors_text", "totals_text", "whole"]

_EXACT = 2**53
"""Up to here a float holds every whole number."""


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """`1 run`, `2 runs`; with what follows, if that changes too: `1 run waits`, `2 runs wait`."""
    number = whole(number)
    shown = f"{number:g}" if isinstance(number, float) else f"{number}"
    return f"{shown} {noun}" if number == 1 else f"{shown} {plural or f'{noun}s'}"


def whole(number: float) -> float:
    """A whole number as an int, so that 3.0 is told as 3; others as they are."""
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) <= _EXACT else number


def amount(number: float) -> str:
    """A number as people write it: `1,200`, `0.25`, without digits that say nothing."""
    number = whole(number)
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.4f}".rstrip("0") if 0.001 <= abs(number) <= _EXACT else f"{number:.3g}"


def totals_text(totals: Mapping[str, float]) -> str:
    """What a run counted, on a line: `copied 120, errors 3`."""
    return ", ".join(f"{name} {amount(value)}" for name, value in totals.items())


def errors_text(reason: str | None, totals: Mapping[str, float]) -> str:
    """How a run succeeded that counted errors, with all that it counted: `with 3 errors (copied 120, errors 3)`."""
    return f"with {reason} ({totals_text(totals)})" if len(totals) > 1 else f"with {reason}"


def a_or_an(noun: str) -> str:
    """The name of a type with its article: `a UUID`, `an object`."""
    return f"an {noun}" if noun[:1].lower() in "aeio" else f"a {noun}"
