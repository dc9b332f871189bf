"""Which runs are listed, page by page, and the search in them.

Called by `runs.py`. The names that a search is for are in no index of the ledger, for that would cost every run that is
written: it looks through the ledger span by span, so that each read is short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import TypedDict, TypeVar

from ostinato.clock import Micros, to_micros
from ostinato.errors import InvalidInput, NotFound
from ostinato.models.ids import RunId
from ostinato.models.policy import check_choice
from ostinato.models.run import Run, RunFilter
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.service.pages import Page, check_limit, cursor_text, read_cursor
from ostinato.service.projects import ProjectService
from ostinato.stores.base import Store
from ostinato.timing.zones import check_aware

__all__ = ["RunsWanted", "listed_runs", "page_of_runs", "run_filter"]

Choice = TypeVar("Choice", bound=StrEnum)

SPAN = 200_000
"""So many runs are looked through by one read: some tenths of a second."""
MOST_SPANS = 5
"""So many reads a page of a search takes at most: what it has not seen then is on the next one."""


class RunsWanted(TypedDict, total=False):
    """Which runs to list; what is not given, or None, leaves nothing out."""

    schedule: str | None
    task: str | None
    session: str | None
    project: str | None
    lane: str | None
    search: str | None
    trigger: Trigger | str | None
    state: RunState | str | Iterable[RunState | str] | None
    cause: Cause | str | Iterable[Cause | str] | None
    since: datetime | None
    until: datetime | None


async def run_filter(store: Store, projects: ProjectService, wanted: RunsWanted) -> RunFilter:
    """What people ask for, as the store is asked: schedule and project must be there."""
    unknown = wanted.keys() - RunsWanted.__annotations__.keys()
    if unknown:
        raise TypeError(f"runs cannot be listed by {', '.join(sorted(unknown))}")
    schedule_id = removed = None
    if (schedule := wanted.get("schedule")) is not None:
        found = await store.schedules.get_schedule(schedule)
        schedule_id = None if found is None else found.id
        if await store.runs.list_runs(RunFilter(removed=schedule, limit=1, brief=True)):
            removed = schedule  # one of this name was deleted after its run
        elif found is None:
            raise NotFound(f"there is no schedule {schedule!r}; 'ostinato schedule ls' lists them")
    await projects.check(wanted.get("project"))
    trigger = wanted.get("trigger")
    return RunFilter(
        schedule_id=schedule_id,
        removed=removed,
        task=wanted.get("task"),
        session=wanted.get("session"),
        project=wanted.get("project"),
        lane=wanted.get("lane"),
        search=wanted.get("search") or None,
        trigger=None if trigger is None else check_choice(Trigger, "trigger", trigger),
        states=_choices(RunState, "state", wanted.get("state")),
        causes=_choices(Cause, "cause", wanted.get("cause")),
        due_from=_instant("since", wanted.get("since")),
        due_until=_instant("until", wanted.get("until")),
    )


async def page_of_runs(store: Store, of: RunFilter, cursor: str | None, limit: int) -> Page[Run]:
    """A page behind a cursor; what is long in a run is cut."""
    before = None if cursor is None else read_cursor(cursor, of, int)[0]
    asked = replace(of, before_id=before, limit=check_limit(limit) + 1, brief=True)
    found, looked_to = await listed_runs(store, asked, MOST_SPANS)
    if len(found) > limit:
        looked_to = found[limit - 1].id
    return Page(found[:limit], None if looked_to is None else cursor_text([looked_to], of))


async def listed_runs(
    store: Store, wanted: RunFilter, most_spans: int | None = None
) -> tuple[Sequence[Run], RunId | None]:
    """The newest runs of a filter; and, of a search that has not seen the whole ledger, the oldest that it has seen."""
    if wanted.search is None:
        return await store.runs.list_runs(wanted), None
    found: list[Run] = []
    before = wanted.before_id or await _behind_newest(store)
    spans = 0
    while before > 1 and len(found) < wanted.limit and spans != most_spans:
        begin = RunId(max(before - SPAN, 1))
        left = wanted.limit - len(found)
        found += await store.runs.list_runs(replace(wanted, before_id=before, from_id=begin, limit=left))
        before, spans = begin, spans + 1
    return found, before if before > 1 and await _is_more(store, before) else None


async def _behind_newest(store: Store) -> RunId:
    newest = await store.runs.list_runs(RunFilter(limit=1, brief=True))
    return RunId(newest[0].id + 1 if newest else 1)


async def _is_more(store: Store, before: RunId) -> bool:
    """Whether the ledger has older runs: the oldest were pruned."""
    return bool(await store.runs.list_runs(RunFilter(before_id=before, limit=1, brief=True)))


def _instant(field: str, moment: datetime | None) -> Micros | None:
    return None if moment is None else to_micros(check_aware(moment, field))


def _choices(kind: type[Choice], field: str, given: str | Iterable[str] | None) -> tuple[Choice, ...]:
    """One word, or some."""
    if given is None:
        return ()
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        if name not in list(kind):
            raise InvalidInput(f"there is no {field} {name!r}", field=field, hint=f"the {field}s are {', '.join(kind)}")
    return tuple(kind(name) for name in names)
