"""Paths of fields: what a model calls `timeout` is `policy.timeout` to whoever filled in the form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields

from ostinato.errors import InvalidInput, TimingError
from ostinato.models.installed_kinds import installed_kinds
from ostinato.models.policy import Policy

__all__ = ["PART", "at", "dotted", "of_schedule", "under"]

PART = "part"
"""The type of what pydantic finds where the model refuses one part of a value: it is told by where it stands."""
_POLICIES = frozenset(field.name for field in fields(Policy)) | {"run_once"}
_WORKS = frozenset({"args", "kwargs", "json"})
_PLACES = frozenset({"body", "query", "path", "header", "cookie"})


def dotted(location: Sequence[str | int]) -> str:
    """The path of a field from where the check of a request found it: without the part of the request it is in, and
    without the kind by which work was told apart. A parameter that is repeated is the same each time."""
    place, *parts = location if location and location[0] in _PLACES else ("", *location)
    if place == "query":
        parts = parts[:1]
    if len(parts) > 1 and parts[0] == "work" and parts[1] in installed_kinds():
        del parts[1]
    return ".".join(str(part) for part in parts)


@contextmanager
def under(prefix: str) -> Iterator[None]:
    """What is wrong with a field in here is told by its path below this one."""
    try:
        yield
    except InvalidInput as error:
        error.field = f"{prefix}.{error.field}" if error.field else prefix
        raise


@contextmanager
def at(field: str) -> Iterator[None]:
    """What is wrong with a timing or a zone in here is told by this field."""
    try:
        yield
    except TimingError as error:
        error.field = field
        raise
    except InvalidInput as error:  # a calendar of it, say, is not there
        if error.field == "timing":
            error.field = field
        raise


@contextmanager
def of_schedule() -> Iterator[None]:
    """Where the fields of a schedule, its work and its policy stand in a request."""
    try:
        with at("timing"):
            yield
    except InvalidInput as error:
        first = error.field.partition(".")[0]
        if first in _POLICIES:
            error.field = f"policy.{error.field}"
        elif first in _WORKS:
            error.field = f"work.{error.field}"
        elif first == "tz":
            error.field = "zone"
        raise
