"""`/schedule …`: the verbs of schedules, each a call of the service, as `commands.py` hands them on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

from ostinato.errors import InvalidInput, VersionConflict
from ostinato.integrations.telegram.incoming import Caller
from ostinato.integrations.telegram.parsing import name_for, parse_new_schedule
from ostinato.integrations.telegram.views import Reply, cut, run_line, schedule_lines, schedule_page
from ostinato.models.access import Role
from ostinato.models.policy import PolicyOptions
from ostinato.models.project import NO_PROJECT
from ostinato.models.schedule import Schedule, ScheduleState
from ostinato.models.telegram import Button, TelegramSettings
from ostinato.models.work import Agent, Shell
from ostinato.service.permissions import admins_part_of, require_role
from ostinato.service.services import Services

__all__ = ["ScheduleCommands", "Verb"]

_MOST_NAMES = 50
"""So many schedules may begin with the same words."""
_RUNS = 10


class Verb(NamedTuple):
    """Something to do, and who may."""

    do: Callable[[Caller, str], Awaitable[Reply]]
    role: Role
    writes: bool = False
    """Whether doing it twice would be twice."""


class ScheduleCommands:
    """What can be done with schedules from a chat."""

    def __init__(self, services: Services, settings: TelegramSettings, zone: str) -> None:
        self._services = services
        self._settings = settings
        self._zone = zone
        self.verbs = {
            "list": Verb(self._list, Role.VIEWER),
            "get": Verb(self._get, Role.VIEWER),
            "runs": Verb(self._runs, Role.VIEWER),
            "run": Verb(self._run, Role.OPERATOR, writes=True),
            "enable": Verb(self._enable, Role.OPERATOR, writes=True),
            "disable": Verb(self._disable, Role.OPERATOR, writes=True),
            "delete": Verb(self._ask_delete, Role.OPERATOR),
            "set": Verb(self._set, Role.OPERATOR, writes=True),
            "add": Verb(self._add, Role.ADMIN, writes=True),
        }

    async def _list(self, _: Caller, rest: str) -> Reply:
        everything = rest.strip().lower() == "all"
        found = await self._services.schedules.page(state=None if everything else ScheduleState.ON, limit=20)
        schedules = [one.schedule for one in found.items]
        return Reply(schedule_lines(schedules, self._zone, total=found.total, everything=everything))

    async def _get(self, _: Caller, rest: str) -> Reply:
        return Reply(schedule_page(await self._found(rest), self._zone))

    async def _runs(self, _: Caller, rest: str) -> Reply:
        schedule = await self._found(rest)
        runs = await self._services.runs.list(schedule=schedule.name, limit=_RUNS)
        return Reply("\n".join(run_line(run, self._zone) for run in runs) or f"{cut(schedule.name)} has not run yet.")

    async def _run(self, _: Caller, rest: str) -> Reply:
        schedule = await self._found(rest)
        run = await self._services.schedules.trigger(schedule.name)
        return Reply(f"{cut(schedule.name)}: run {run.id} is queued.")

    async def _enable(self, _: Caller, rest: str) -> Reply:
        schedule = await self._found(rest)
        return Reply(schedule_page(await self._services.schedules.enable(schedule.name), self._zone))

    async def _disable(self, caller: Caller, rest: str) -> Reply:
        schedule = await self._found(rest)
        await self._services.schedules.disable(schedule.name, note=f"switched off by {caller.who}")
        return Reply(f"{cut(schedule.name)} is off; /schedule enable {schedule.id} switches it on.")

    async def _ask_delete(self, _: Caller, rest: str) -> Reply:
        schedule = await self._found(rest)
        yes = Button("Delete", f"delete:{schedule.id}.{schedule.version}")
        return Reply(f"Delete {cut(schedule.name)} with all its runs?", [[yes, Button("Keep", "keep")]])

    async def _set(self, caller: Caller, rest: str) -> Reply:
        ref, _, change = rest.rpartition(" project ")
        project = change.strip()
        if not ref.strip() or not project:
            raise InvalidInput("this cannot be set", field="set", hint="write /schedule set NAME project P, or none")
        schedule = await self._found(ref)
        if (part := admins_part_of(schedule)) is not None:
            # It runs in the folder of its project: another one is another command.
            require_role(caller.who, caller.role, Role.ADMIN, f"changing the project of a schedule with {part}")
        await self._services.schedules.edit(schedule.name, project=project, version=schedule.revision)
        where = "is in no project" if project == NO_PROJECT else f"is in project {cut(project)}"
        return Reply(f"{cut(schedule.name)} {where}.")

    async def _add(self, caller: Caller, rest: str) -> Reply:
        new = parse_new_schedule(rest)
        work: Agent | Shell = Shell(new.text)
        if new.kind == Agent.kind:
            # The conversation of the chat is not for it: a schedule begins a new one each time.
            work = replace(self._settings.agent or Agent(), prompt=new.text, context=None)
        policy: PolicyOptions = {"notify": [caller.channel]}
        if new.once:
            policy["run_once"] = True
        for name in _names(new.name, new.text):
            try:
                schedule = await self._services.schedules.add(
                    name, new.timing, work, tz=new.zone, project=new.project, only_new=True, **policy
                )
            except VersionConflict:
                if new.name is not None:
                    raise
                continue  # another one begins with the same words
            return Reply(f"Added.\n{schedule_page(schedule, self._zone)}")
        raise InvalidInput("too many schedules begin with these words", field="name", hint="give --name NAME")

    async def _found(self, ref: str) -> Schedule:
        """The schedule of this name or number."""
        if not ref.strip():
            raise InvalidInput("which schedule?", field="name", hint="give its name or its number; /schedule list")
        return (await self._services.schedules.look(ref.strip())).schedule


def _names(given: str | None, text: str) -> list[str]:
    if given is not None:
        return [given]
    name = name_for(text)
    return [name, *(f"{name}-{number}" for number in range(2, _MOST_NAMES))]
