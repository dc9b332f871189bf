"""Pages of lists: how much comes before one, and the command that prints the next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ostinato.cli.console import say
from ostinato.command_hints import hint
from ostinato.errors import InvalidInput

__all__ = ["MOST", "say_next", "skipped_by"]

MOST = 10_000
"""How far a page by its number may reach: it is counted off from the beginning of the list."""


def skipped_by(page: int, limit: int, after: object = None) -> int:
    """How many come before this page; `after` is the other way to say where it begins."""
    for name, value in (("page", page), ("limit", limit)):
        if value < 1:
            raise InvalidInput(f"{name} cannot be {value}", field=name, hint="give 1 or more")
    if page > 1 and after is not None:
        raise InvalidInput("give one of page and after, not both", field="after", hint="leave out one of them")
    if page > 1 and page * limit > MOST:
        raise InvalidInput(
            f"page {page} of {limit} is too far", field="page", hint=f"the first {MOST:,} can be reached"
        )
    return (page - 1) * limit


def say_next(verb: str, names: Sequence[str], flags: Mapping[str, Any]) -> None:
    """Name the command for what comes next, with the flags that were given."""
    said = hint(verb, *names, rest=" ".join(_flags(flags)))
    say(f"there are more: {said} lists the next", "dim")


def _flags(flags: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name, value in flags.items():
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                found.append(f"--{name}")
            elif one not in (None, False):
                found.append(f"--{name} {shlex.quote(str(one))}")
    return found
