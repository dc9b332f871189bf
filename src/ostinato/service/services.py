"""All use cases of one database, made together."""

from __future__ import annotations

from collections.abc import Callable

from ostinato.announcer import Announcer
from ostinato.clock import Clock
from ostinato.listeners import Listeners
from ostinato.models.access import LoginLimits
from ostinato.models.session_options import SessionDefaults
from ostinato.service.access import AccessService
from ostinato.service.audit import AuditService
from ostinato.service.blocking import Blocking
from ostinato.service.calendars import CalendarService
from ostinato.service.chains import ChainService
from ostinato.service.chats import ChatService
from ostinato.service.check_ins import CheckInService
from ostinato.service.idempotency import IdempotencyService
from ostinato.service.incidents import IncidentService
from ostinato.service.known_tasks import KnownTasks
from ostinato.service.lanes import LaneService
from ostinato.service.live.hub import LiveHub
from ostinato.service.nodes import NodeService
from ostinato.service.notifications import NotificationService, Sender
from ostinato.service.overview import OverviewService
from ostinato.service.projects import ProjectService
from ostinato.service.runs import RunService
from ostinato.service.schedules.drafts import Code
from ostinato.service.schedules.service import ScheduleService
from ostinato.service.sessions import SessionService
from ostinato.service.tasks import TaskService
from ostinato.service.timeline import TimelineService
from ostinato.service.timings import TimingService
from ostinato.service.transactions import TransactionService
from ostinato.service.upkeep import UpkeepService
from ostinato.service.why import WhyService
from ostinato.stores.base import Store
from ostinato.tuning import Tuning

__all__ = ["Services"]


class Services:
    """What a door holds."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        zone: str,
        code: Code,
        draining: Callable[[], bool],
        unserved: Callable[[], bool],
        logins: LoginLimits,
        tuning: Tuning,
        listeners: Listeners,
        sessions: SessionDefaults,
        sender: Sender,
        app: str | None,
    ) -> None:
        self.lanes = LaneService(store, clock, listeners)
        self.projects = ProjectService(store, clock)
        self.notifications = NotificationService(store, clock, zone, self.projects, sender)
        self.blocking = Blocking(store, clock, zone, code, app)
        self.calendars = CalendarService(store, clock, zone)
        places = (self.lanes, self.projects, self.notifications)
        removal_seconds = tuning.removal_stop_seconds
        self.schedules = ScheduleService(store, clock, zone, *places, self.calendars, code, removal_seconds, listeners)
        key_seconds = tuning.key_free_seconds
        known = KnownTasks(store, clock, code)
        self.runs = RunService(
            store, clock, *places, code, known, draining, unserved, listeners, key_seconds, self.blocking
        )
        self.transactions = TransactionService(store, clock, self.lanes, self.notifications, self.runs)
        self.chains = ChainService(store, clock, self.runs, listeners, key_seconds)
        self.incidents = IncidentService(store, clock, self.projects, self.runs)
        self.sessions = SessionService(store, clock, *places, self.runs, code, known, draining, sessions, key_seconds)
        self.nodes = NodeService(store, clock)
        self.live = LiveHub(store, clock, self.runs, zone, tuning)
        self.check_ins = CheckInService(store, clock, Announcer(listeners))
        self.access = AccessService(store, clock, logins)
        self.audit = AuditService(store, clock)
        self.chats = ChatService(store, clock)
        self.idempotency = IdempotencyService(store, clock)
        self.upkeep = UpkeepService(store, clock)
        self.tasks = TaskService(store, clock, code)
        self.timings = TimingService(clock, zone, self.calendars)
        self.overview = OverviewService(store, clock, zone, self.blocking)
        self.timeline = TimelineService(store, clock, zone, self.projects, tuning)
        self.why = WhyService(store, clock, zone, self.blocking)
