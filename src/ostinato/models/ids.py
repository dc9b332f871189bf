"""Typed ids: a schedule's number is not a run's number."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NewType, Protocol

from ostinato.errors import InvalidInput

__all__ = ["DeliveryId", "IncidentId", "NodeId", "RuleId", "RunId", "RunIds", "RunLike", "ScheduleId", "run_id"]

ScheduleId = NewType("ScheduleId", int)
RunId = NewType("RunId", int)
NodeId = NewType("NodeId", str)
IncidentId = NewType("IncidentId", int)
RuleId = NewType("RuleId", int)
DeliveryId = NewType("DeliveryId", int)


class RunIds(list[RunId]):
    """The runs that were asked for, in their order."""

    def __init__(self, ids: Iterable[RunId] = (), known: Collection[RunId] = ()) -> None:
        super().__init__(ids)
        self.known = frozenset(known)
        """Those of them that were active before, under the same key."""


class Numbered(Protocol):
    """A run, or a handle of one."""

    @property
    def id(self) -> int | None: ...


RunLike = int | Numbered


def run_id(given: RunLike) -> RunId:
    """The number of a run, which may be given as the run or its handle; InvalidInput if there is none."""
    number = given if isinstance(given, int) else getattr(given, "id", given)
    if number is None and given is not None:
        raise InvalidInput(f"{given!r} has no number yet", field="id", hint="ask the handle itself: handle.wait()")
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidInput(f"{given!r} is no number of a run", field="id", hint="give its number, or its handle")
    return RunId(number)
