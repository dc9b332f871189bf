"""Projects: add, get, list, remove."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ostinato.clock import Clock
from ostinato.command_hints import hint
from ostinato.errors import Conflict, InvalidInput, NotFound
from ostinato.models.project import NO_PROJECT, Project, check_project
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.work_checks import check_env
from ostinato.service.audit import audited
from ostinato.stores.base import Store

__all__ = ["ProjectService"]

_NAMED = 5
"""How many schedules an error names."""


class ProjectService:
    """What can be done with projects."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def add(self, name: str, folder: str | Path, *, env: Mapping[str, str] | None = None) -> Project:
        """Add a project, or update the one of this name; doing it twice changes nothing.

        Without `env`, an existing one keeps its own. Values may be references: `env:NAME`, `file:PATH`.
        """
        return (await self.put(name, folder, env=env))[0]

    @audited("project.add")
    async def put(self, name: str, folder: str | Path, *, env: Mapping[str, str] | None = None) -> tuple[Project, bool]:
        """The same; says also whether it is new."""
        check_project(name)
        place = _checked_folder(folder)
        if env is None:
            env = known.env if (known := await self._find(name)) is not None else {}
        check_env(env)
        is_new = await self._store.projects.put_project(name, place, env, self._clock.now())
        return await self.get(name), is_new

    async def get(self, name: str) -> Project:
        """The project of this name."""
        found = await self._find(name)
        if found is None:
            raise NotFound(f"there is no project {name!r}; add it with {hint('project add', name, 'FOLDER')}")
        return found

    async def check(self, name: str | None) -> None:
        """NotFound if a list is to be of a project that is not there; no project at all may be asked for, too."""
        if name not in (None, NO_PROJECT):
            await self.get(name)

    async def list(self) -> Sequence[Project]:
        """All projects, sorted by name."""
        return await self._store.projects.list_projects()

    @audited("project.remove")
    async def remove(self, name: str) -> None:
        """Delete a project and its conversations; a Conflict while schedules belong to it. Its folder stays."""
        await self.get(name)
        if not await self._store.projects.remove_project(name):
            wanted = ScheduleFilter(project=name, limit=_NAMED + 1)
            using = [schedule.name for schedule in await self._store.schedules.list_schedules(wanted)]
            listed = ", ".join(using[:_NAMED]) + (", …" if len(using) > _NAMED else "")
            raise Conflict(
                f"schedules belong to project {name!r}: {listed}; remove them, or take them out of it with "
                "'ostinato project set SCHEDULE none'"
            )

    async def _find(self, name: str) -> Project | None:
        return next(iter(await self._store.projects.list_projects(name)), None)


def _checked_folder(folder: str | Path) -> str:
    try:
        place = Path(folder).expanduser().resolve()
        is_there, is_folder = place.exists(), place.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # too long, or of nobody's home
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"the folder cannot be read: {reason}", field="folder", hint="correct it") from None
    if is_there and not is_folder:
        raise InvalidInput(f"{place} is not a folder", field="folder", hint="give the folder that it is in")
    if not is_folder:
        first = f"make it first: mkdir -p {shlex.quote(str(place))}"
        raise InvalidInput(f"{place} does not exist", field="folder", hint=first)
    return str(place)
