"""All use cases of one database, made together."""

from __future__ import annotations

from collections.abc import Callable

from ostinato.clock import Clock
from ostinato.service.drafts import Code
from ostinato.service.lanes import LaneService
from ostinato.service.nodes import NodeService
from ostinato.service.projects import ProjectService
from ostinato.service.runs import RunService
from ostinato.service.schedules import ScheduleService
from ostinato.service.sessions import SessionService
from ostinato.service.upkeep import UpkeepService
from ostinato.service.why import WhyService
from ostinato.stores.base import Store

__all__ = ["Services"]


class Services:
    """What a door holds."""

    def __init__(self, store: Store, clock: Clock, zone: str, code: Code, draining: Callable[[], bool]) -> None:
        self.lanes = LaneService(store, clock)
        self.projects = ProjectService(store, clock)
        self.schedules = ScheduleService(store, clock, zone, self.lanes, self.projects, code)
        self.runs = RunService(store, clock, self.lanes, self.projects, code, draining)
        self.sessions = SessionService(store, clock, self.lanes, self.runs, code, draining)
        self.nodes = NodeService(store, clock)
        self.upkeep = UpkeepService(store, clock)
        self.why = WhyService(store, clock)
