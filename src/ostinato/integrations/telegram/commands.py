"""Commands: which there are, who may, and what each does. `schedule_commands.py` has those of schedules."""

from __future__ import annotations

from ostinato.config import Settings
from ostinato.errors import InvalidInput, NotFound
from ostinato.integrations.telegram.incoming import Caller
from ostinato.integrations.telegram.parsing import Command
from ostinato.integrations.telegram.schedule_commands import ScheduleCommands, Verb
from ostinato.integrations.telegram.views import HELP, Reply, status_text, why_text
from ostinato.models.access import Role
from ostinato.models.schedule import ScheduleState
from ostinato.models.states import RunState
from ostinato.plurals import counted
from ostinato.service.services import Services

__all__ = ["Commands"]

_FEW = 5


class Commands:
    """What a text with a slash in front can ask for."""

    def __init__(self, services: Services, settings: Settings) -> None:
        self._services = services
        self._zone = settings.tz
        self._schedules = ScheduleCommands(services, settings.telegram, settings.tz)
        self._verbs = {
            "help": Verb(self._help, Role.VIEWER),
            "start": Verb(self._help, Role.VIEWER),
            "status": Verb(self._status, Role.VIEWER),
            "why": Verb(self._why, Role.VIEWER),
            "cancel": Verb(self._cancel, Role.OPERATOR, writes=True),
            "stop": Verb(self._stop, Role.OPERATOR, writes=True),
            "stopall": Verb(self._stop_all, Role.OPERATOR, writes=True),
        }

    def has(self, command: Command) -> bool:
        """Whether there is such a command, whatever it is given."""
        return command.name == "schedule" or command.name in self._verbs

    def find(self, command: Command) -> tuple[Verb, str]:
        """The verb of a command, and what it is given; InvalidInput if there is none."""
        if command.name != "schedule":
            verb, rest = self._verbs.get(command.name), command.rest
        else:
            name, _, rest = command.rest.partition(" ")
            verb, rest = self._schedules.verbs.get(name.lower()), rest.strip()
        if verb is None:
            raise InvalidInput("there is no such command", field="command", hint="/help lists them")
        return verb, rest

    async def _help(self, caller: Caller, _: str) -> Reply:
        return Reply(f"{HELP}\nYou are {caller.who}, with the role {caller.role}.")

    async def _status(self, caller: Caller, _: str) -> Reply:
        services = self._services
        overview = await services.overview.look(is_here=True)
        running = await services.runs.list(state=RunState.RUNNING, limit=_FEW)
        failed = await services.runs.list(state=RunState.FAILED, limit=_FEW)
        broken = await services.schedules.page(state=ScheduleState.BROKEN, limit=_FEW)
        lines = [status_text(overview, running, [one.schedule for one in broken.items], failed, self._zone)]
        try:
            session = await services.sessions.get(caller.session)
        except NotFound:
            pass
        else:
            lines.append(f"this chat: {session.running} under way, {session.queued} waiting")
        return Reply("\n".join(lines))

    async def _why(self, _: Caller, rest: str) -> Reply:
        if not rest:
            raise InvalidInput("which schedule?", field="name", hint="write /why NAME")
        schedule = (await self._services.schedules.look(rest)).schedule
        return Reply(why_text(await self._services.why.why(schedule.name)))

    async def _cancel(self, caller: Caller, rest: str) -> Reply:
        if not (rest.isascii() and rest.isdecimal() and len(rest) <= 18):
            raise InvalidInput("which run?", field="run", hint="write /cancel and the number of a run")
        run = await self._services.runs.cancel(int(rest), reason=f"cancelled by {caller.who}")
        return Reply(f"run {run.id} is {run.state}." if run.ended else f"run {run.id} was told to stop.")

    async def _stop(self, caller: Caller, _: str) -> Reply:
        stopped = await self._services.sessions.stop(caller.session)
        if stopped.cancelled or stopped.dropped:
            return Reply("Stopped.")
        try:
            waiting = (await self._services.sessions.get(caller.session)).queued
        except NotFound:
            waiting = 0
        more = f" {counted(waiting, 'message waits', 'messages wait')}: /stopall drops them." if waiting else ""
        return Reply(f"Nothing is under way.{more}")

    async def _stop_all(self, caller: Caller, _: str) -> Reply:
        stopped = await self._services.sessions.stop_all(caller.session)
        if not stopped.cancelled and not stopped.dropped:
            return Reply("Nothing is under way, and nothing waits.")
        return Reply(f"Stopped {stopped.cancelled}, dropped {stopped.dropped}.")
