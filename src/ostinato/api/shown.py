"""Schedules, runs and projects as whoever asks may see them: values of variables and headers may be secrets, and are
for an admin alone; what HTTP work sends (its query and body) is for those who may make such work.

`access.py` says who asks; the routes take their shapes from here, and not from `service/shapes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ostinato.models.access import Login, Role
from ostinato.models.project import Project
from ostinato.models.run import Run
from ostinato.models.schedule import RecentRun, Schedule
from ostinato.service import shapes, view_shapes
from ostinato.service.overview import Overview
from ostinato.service.why import Why

__all__ = [
    "HIDDEN",
    "overview_shape",
    "project_shape",
    "run_shape",
    "schedule_shape",
    "shown_to",
    "why_shape",
]

HIDDEN = "***"
"""Stands where a value is not shown."""

# A reference is no secret: it says where one is. In a header the scheme may stand before it.
_REFERENCE = re.compile(r"([A-Za-z-]+ +)?(env|file):.+", re.DOTALL)

_role: ContextVar[Role] = ContextVar("ostinato_role", default=Role.VIEWER)


@contextmanager
def shown_to(login: Login) -> Iterator[None]:
    """What is shown in here, this login sees."""
    before = _role.set(login.role)
    try:
        yield
    finally:
        _role.reset(before)


def schedule_shape(
    schedule: Schedule, running: int | None = None, recent: Sequence[RecentRun] | None = None
) -> dict[str, Any]:
    """A schedule as JSON, and its last run in it."""
    return _schedule(shapes.schedule_shape(schedule, running, recent))


def run_shape(run: Run, zone: str | None = None) -> dict[str, Any]:
    """A run as JSON."""
    return _run(shapes.run_shape(run, zone))


def project_shape(project: Project) -> dict[str, Any]:
    """A project as JSON."""
    shape = shapes.project_shape(project)
    if not _role.get().covers(Role.ADMIN):
        shape["env"] = _names(shape["env"])
    return shape


def why_shape(why: Why, zone: str | None = None) -> dict[str, Any]:
    """An answer as JSON, with the run that it rests on."""
    shape = shapes.why_shape(why, zone)
    if shape["run"] is not None:
        _run(shape["run"])
    return shape


def overview_shape(overview: Overview, *, is_here: bool) -> dict[str, Any]:
    """All at a glance, as JSON."""
    shape = view_shapes.overview_shape(overview, is_here=is_here)
    for runs in ("running", "late", "failed"):
        for run in shape[runs]:
            _run(run)
    for schedule in shape["broken"]:
        _schedule(schedule)
    return shape


def _schedule(shape: dict[str, Any]) -> dict[str, Any]:
    _hide(shape["work"])
    if shape["last_run"] is not None:
        _run(shape["last_run"])
    return shape


def _run(shape: dict[str, Any]) -> dict[str, Any]:
    _hide(shape["work"])
    result = shape["result"]
    if shape["work"]["kind"] == "http" and isinstance(result, dict) and not _role.get().covers(Role.OPERATOR):
        # The address that answered, with its query.
        shape["result"] = result | {"url": _hidden_query(str(result.get("url", "")))}
    return shape


def _hide(work: dict[str, Any]) -> None:
    """The shape of work is made anew for each answer: it may be changed."""
    role = _role.get()
    if work["kind"] == "http" and not role.covers(Role.OPERATOR):
        work["url"] = _hidden_query(work["url"])
        for field in ("json", "body"):
            work[field] = None if work[field] is None else HIDDEN
    if role.covers(Role.ADMIN) or work["kind"] == "function":
        return
    if work["kind"] == "unreadable":
        work["text"] = HIDDEN
    for field in ("env", "headers"):
        if work.get(field):
            work[field] = _names(work[field])


def _hidden_query(url: str) -> str:
    """An address whose query has its names alone; a password in it is not shown either."""
    place, question, query = url.partition("?")
    scheme, separator, rest = place.partition("://")
    host, slash, path = rest.partition("/")
    user, at, name = host.rpartition("@")
    place = f"{scheme}{separator}{HIDDEN if user else ''}{at}{name}{slash}{path}"
    pairs = [part.partition("=") for part in query.partition("#")[0].split("&")]
    shown = "&".join(f"{key}={HIDDEN}" if equals else HIDDEN for key, equals, _ in pairs)
    return f"{place}?{shown}" if question else place.partition("#")[0]


def _names(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value if _REFERENCE.fullmatch(value) else HIDDEN for name, value in values.items()}
