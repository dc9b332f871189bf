"""What is made of the kinds of work, one part for each: flags, requests, answers.

A part is made of what a package says. Where that cannot be, the kind is left out there, and everything else works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ostinato.logs import get_logger
from ostinato.models.work_kinds import WorkKind
from ostinato.models.work_values import OUR_KINDS

__all__ = ["of_each_kind"]

log = get_logger("ostinato")
T = TypeVar("T")


def of_each_kind(make: Callable[[WorkKind], T], what: str, kinds: Mapping[str, WorkKind]) -> dict[str, T]:
    """What `make` gives for each kind, by its name; `what` says in the log what is missing of one that it fails for."""
    made: dict[str, T] = {}
    for name, kind in kinds.items():
        try:
            made[name] = make(kind)
        except Exception as error:
            if kind in OUR_KINDS:
                raise
            why = f"{type(error).__name__}: {error}"
            log.error("%s work, which a package adds, has no %s here: %s", name, what, " ".join(why.split()))
    return made
