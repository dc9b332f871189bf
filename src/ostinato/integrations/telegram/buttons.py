"""Buttons under messages: what a press asks for, who may, and what it does.

What a button stands for comes back from a program of whoever pressed it, and may be forged: it says what is wanted, and
nothing about who may. `notifications/telegram.py` puts the buttons of failures under their messages.
"""

from __future__ import annotations

import re

from ostinato.errors import Conflict, InvalidInput
from ostinato.integrations.telegram.incoming import Caller
from ostinato.integrations.telegram.schedule_commands import Verb
from ostinato.integrations.telegram.views import Reply, cut, why_text
from ostinato.models.access import Role
from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import Revision
from ostinato.service.services import Services

__all__ = ["Buttons"]

_LAST_OUTPUT = 3_500
"""How many letters of an output are shown: as many as one message has."""
_REVISION = re.compile(r"(\d{1,18})\.(\d{1,18})")


class Buttons:
    """What can be pressed."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._verbs = {
            "again": Verb(self._run_again, Role.OPERATOR, writes=True),
            "why": Verb(self._why, Role.VIEWER),
            "off": Verb(self._pause, Role.OPERATOR, writes=True),
            "output": Verb(self._output, Role.VIEWER),
            "delete": Verb(self._delete, Role.OPERATOR, writes=True),
            "keep": Verb(self._keep, Role.VIEWER),
        }

    def find(self, data: str) -> tuple[Verb, str]:
        """The verb of a button, and what it is given; InvalidInput if there is none."""
        name, _, rest = data.partition(":")
        verb = self._verbs.get(name)
        if verb is None:
            raise InvalidInput("this button does nothing any more", field="button", hint="/help lists the commands")
        return verb, rest

    def ends_question(self, data: str) -> bool:
        """Whether it answers a question, which is then gone."""
        return data.partition(":")[0] in ("delete", "keep")

    async def _run_again(self, _: Caller, rest: str) -> Reply:
        if rest.startswith("="):
            run = await self._services.schedules.trigger(rest[1:])
        else:
            run = await self._services.runs.retry(_number(rest))
        return Reply(f"{cut(run.schedule or run.task or 'It')}: run {run.id} is queued.")

    async def _why(self, _: Caller, rest: str) -> Reply:
        return Reply(why_text(await self._services.why.why(await self._schedule(rest))))

    async def _pause(self, caller: Caller, rest: str) -> Reply:
        name = await self._schedule(rest)
        schedule = await self._services.schedules.disable(name, note=f"switched off by {caller.who}")
        return Reply(f"{cut(name)} is off; /schedule enable {schedule.id} switches it on.")

    async def _output(self, _: Caller, rest: str) -> Reply:
        text = (await self._services.runs.output(_number(rest))).strip()
        if len(text) > _LAST_OUTPUT:
            text = f"…{text[-_LAST_OUTPUT:]}"
        return Reply(text or f"run {rest} has printed nothing.")

    async def _delete(self, _: Caller, rest: str) -> Reply:
        found = _REVISION.fullmatch(rest)
        if found is None:
            raise InvalidInput("this button cannot be read", field="button", hint="ask again: /schedule delete NAME")
        revision = Revision(ScheduleId(int(found[1])), int(found[2]))
        schedule = await self._of_id(revision.id)
        await self._services.schedules.remove(schedule, version=revision)
        return Reply(f"{cut(schedule)} is deleted.")

    async def _keep(self, _: Caller, __: str) -> Reply:
        return Reply("Nothing was deleted.")

    async def _of_id(self, id: ScheduleId) -> str:
        """The name of the schedule of this number; one that is called by it is another."""
        found = (await self._services.schedules.look(str(id))).schedule
        if found.id != id:
            raise Conflict(f"a schedule is called {id}: delete that of this number by its name")
        return found.name

    async def _schedule(self, rest: str) -> str:
        """The schedule of a run, or of a name."""
        if rest.startswith("="):
            return rest[1:]
        run = await self._services.runs.get(_number(rest))
        if run.schedule is None:
            raise Conflict(f"run {run.id} has no schedule")
        return run.schedule


def _number(rest: str) -> int:
    if not (rest.isascii() and rest.isdecimal() and len(rest) <= 18):
        raise InvalidInput("this button cannot be read", field="button", hint="/help lists the commands")
    return int(rest)
