"""The admin's lists where the ledger is in no database of Django: the same schedules and runs, asked of the app."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.timezone import is_naive, localtime, make_aware

from ostinato.errors import NotFound, OstinatoError, StoreError
from ostinato.integrations.django.page_url import page_url
from ostinato.integrations.django.roles import as_shown
from ostinato.integrations.django.scheduler import get_jobs
from ostinato.models.run import Run
from ostinato.models.schedule import Schedule
from ostinato.models.states import RunState
from ostinato.service.answers import run_answer, schedule_answer

__all__ = ["LedgerView", "RunView", "ScheduleView", "as_text"]

_PER_PAGE = 100
_MOST_SCHEDULES = 100_000
"""Behind these, nobody turns pages."""
_MOST_NAMES = 20
"""Schedules, and tasks, whose runs a search collects."""
_DIGITS = 18
_SCHEDULE_FIELDS = """
name timing zone sentence state enabled broken off_note note next_run_at next_run_reason project owner remaining
failures created_at updated_at
"""
_RUN_FIELDS = """
id schedule task state cause reason trigger due_at last_due_at count ready_at started_at finished_at attempt lane
priority session node totals result error
"""


def as_text(value: Any) -> str:
    """A value of the ledger for people. Times are to the second, in the zone that Django has for whoever looks."""
    match value:
        case None:
            return "-"
        case datetime():
            moment = make_aware(value) if is_naive(value) else value
            return f"{localtime(moment):%Y-%m-%d %H:%M:%S %Z}"
        case dict() | list():
            return msgspec.json.encode(value).decode()
        case _:
            return str(value)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a list: a link to the whole, and what stands beside it."""

    key: str
    cells: Sequence[str]

    @property
    def url(self) -> str:
        """Of the details, as the admin writes them."""
        return f"{quote(self.key)}/change/"


class LedgerView(ABC):
    """A list and its details."""

    noun: str
    columns: Sequence[str]
    more_title: str
    states: Sequence[str]

    @abstractmethod
    def rows(self, search: str, state: str, before: int | None) -> Sequence[Row]:
        """So many as one page shows, and one more if there are more."""

    @abstractmethod
    def fields(self, key: str, user: Any) -> Sequence[tuple[str, Any]]:
        """All of one; NotFound if it is not there."""

    @abstractmethod
    def next_of(self, last: Row, before: int | None) -> str:
        """What the link to the following page says, behind one that began here and ends with this row."""

    def list(self, admin: Any, request: HttpRequest) -> HttpResponse:
        """The list, for who may see it."""
        if not admin.has_view_permission(request):
            raise PermissionDenied
        search, state = request.GET.get("q", "").strip(), request.GET.get("state", "")
        before = _number(request.GET.get("before", ""))
        problem, status, found = None, 200, []
        try:
            found = [*self.rows(search, state if state in self.states else "", before)]
        except OstinatoError as error:
            problem, status = str(error), 503 if isinstance(error, StoreError) else 200
        return self._answer(
            admin,
            request,
            "ostinato/list.html",
            status,
            rows=found[:_PER_PAGE],
            columns=self.columns,
            states=self.states,
            search=search,
            search_help=admin.search_help_text,
            state=state,
            more=self.next_of(found[_PER_PAGE - 1], before) if len(found) > _PER_PAGE else None,
            more_title=self.more_title,
            problem=problem,
        )

    def show(self, admin: Any, request: HttpRequest, quoted: str) -> HttpResponse:
        """All of one, for who may see it."""
        if not admin.has_view_permission(request):
            raise PermissionDenied
        key = unquote(quoted)
        try:
            fields = self.fields(key, request.user)
        except (NotFound, ValueError) as error:
            raise Http404(str(error)) from error
        except OstinatoError as error:
            return self.unavailable(admin, request, str(error))
        return self._answer(
            admin,
            request,
            "ostinato/detail.html",
            fields=[(name, as_text(value)) for name, value in fields],
            key=key,
            page=page_url(self.noun, key),
        )

    def unavailable(self, admin: Any, request: HttpRequest, problem: str) -> HttpResponse:
        """Why there is nothing to show, for who may see it."""
        if not admin.has_view_permission(request):
            raise PermissionDenied
        return self._answer(admin, request, "ostinato/list.html", 503, columns=self.columns, problem=problem)

    def _answer(self, admin: Any, request: HttpRequest, template: str, status: int = 200, **more: Any) -> HttpResponse:
        opts = admin.model._meta
        context = {
            **admin.admin_site.each_context(request),
            "title": opts.verbose_name_plural.capitalize(),
            "opts": opts,
        }
        return TemplateResponse(request, template, {**context, **more}, status=status)


class ScheduleView(LedgerView):
    """Schedules, the soonest first. The following pages begin behind so many."""

    noun = "schedules"
    more_title = "more"
    columns = ("Name", "Timing", "State", "Next run", "Last run", "Task")
    states = ("on", "off")

    def rows(self, search: str, state: str, before: int | None) -> Sequence[Row]:
        enabled = None if not state else state == "on"
        start = min(before or 0, _MOST_SCHEDULES)
        found = get_jobs().schedules.list(search=search or None, enabled=enabled, limit=start + _PER_PAGE + 1)
        return [Row(schedule.name, [*map(as_text, self._cells(schedule))]) for schedule in found[start:]]

    def next_of(self, last: Row, before: int | None) -> str:
        return str((before or 0) + _PER_PAGE)

    def _cells(self, schedule: Schedule) -> Sequence[Any]:
        last = schedule.last_run
        return (
            schedule.timing,
            schedule.state,
            schedule.next_run_at,
            None if last is None else last.state,
            schedule.work.needs,
        )

    def fields(self, key: str, user: Any) -> Sequence[tuple[str, Any]]:
        found = as_shown(schedule_answer(get_jobs().schedules.get(key)), user)
        return [(name.replace("_", " "), getattr(found, name)) for name in _SCHEDULE_FIELDS.split()]


class RunView(LedgerView):
    """Runs, the newest first."""

    noun = "runs"
    more_title = "older"
    columns = ("Run", "Name", "State", "Reason", "Due", "Started", "Finished")
    states = tuple(map(str, RunState))

    def rows(self, search: str, state: str, before: int | None) -> Sequence[Row]:
        found = self._found(search, before, {"state": state} if state else {})
        return [Row(str(run.id), [*map(as_text, self._cells(run))]) for run in found]

    def next_of(self, last: Row, before: int | None) -> str:
        return last.key

    def _found(self, search: str, before: int | None, wanted: dict[str, Any]) -> Sequence[Run]:
        """By their number, by a part of the name of their schedule or task, or by their session."""
        jobs = get_jobs()
        if (number := _number(search)) is not None:
            with suppress(NotFound):
                return [jobs.runs.get(number)]
            return []
        found: dict[int, Run] = {}
        for named in self._named(search) if search else [{}]:
            runs = jobs.runs.list(before=before, limit=_PER_PAGE + 1, **named, **wanted)
            found |= {run.id: run for run in runs}
        return sorted(found.values(), key=lambda run: run.id, reverse=True)[: _PER_PAGE + 1]

    def _named(self, search: str) -> Iterator[dict[str, Any]]:
        """What the ledger can be asked for, which knows whole names."""
        jobs, part = get_jobs(), search.casefold()
        for schedule in jobs.schedules.list(search=search, limit=_MOST_NAMES):
            if part in schedule.name.casefold():  # and not only in its timing or work
                yield {"schedule": schedule.name}
        tasks = [name for name in sorted(jobs.registry.tasks) if part in name.casefold()]
        for name in {*tasks[:_MOST_NAMES], search}:
            yield {"task": name}
        yield {"session": search}

    def _cells(self, run: Run) -> Sequence[Any]:
        return (run.schedule or run.task, run.state, run.reason, run.due_at, run.started_at, run.finished_at)

    def fields(self, key: str, user: Any) -> Sequence[tuple[str, Any]]:
        number = _number(key)
        if number is None:
            raise ValueError(f"{key!r} is no number of a run")
        jobs = get_jobs()
        found = as_shown(run_answer(jobs.runs.get(number), jobs.settings.tz), user)
        shown = [(name.replace("_", " "), getattr(found, name)) for name in _RUN_FIELDS.split()]
        return [*shown, ("output", jobs.runs.output(number))]


def _number(text: str) -> int | None:
    """A number that a database takes."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None
