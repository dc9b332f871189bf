"""What a check of `ostinato doctor` found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["NAMED", "Finding", "named"]

NAMED = 5
"""How many of many are named."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and what to do about it."""

    check: str
    status: Literal["ok", "warn", "fail"]
    text: str
    fix: str | None = None


def named(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
