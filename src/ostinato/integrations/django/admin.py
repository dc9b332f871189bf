"""Schedules and runs in Django's admin, to look at: nothing can be added, changed or deleted there.

Where the ledger is in a PostgreSQL of DATABASES, Django lists its rows. Elsewhere `ledger_views.py` asks the app.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import DatabaseError, transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import cached_property
from django.utils.html import format_html

from ostinato.errors import OstinatoError
from ostinato.integrations.django.ledger_views import LedgerView, RunView, ScheduleView, as_text
from ostinato.integrations.django.models import MicrosecondsField, Run, Schedule, ledger_alias
from ostinato.integrations.django.page_url import page_url
from ostinato.integrations.django.roles import as_shown
from ostinato.integrations.django.scheduler import get_jobs
from ostinato.service.answers import run_answer
from ostinato.timing.calendar_days import folded

__all__ = ["RunAdmin", "ScheduleAdmin"]

_MOST_COUNTED = 10_000
_NOT_THERE = (
    "the ledger is not there yet: an engine makes it when it starts, and so does the first task that is enqueued"
)
_MISSING = frozenset({"42P01", "3F000"})
"""What PostgreSQL says of a table, or a schema, that is not there."""


class _BoundedPaginator(Paginator):
    """Counts no further than somebody would turn pages: a ledger may have millions of rows."""

    @cached_property
    def count(self) -> int:
        return int(self.object_list[:_MOST_COUNTED].count())


def _shown_time(field: MicrosecondsField) -> Callable[[Any], str]:
    def shown(row: Any) -> str:
        return as_text(getattr(row, field.name))

    made: Callable[[Any], str] = admin.display(shown, description=field.verbose_name, ordering=field.name)
    return made


class _LedgerAdmin(admin.ModelAdmin):
    """Read-only; `app_view` lists what Django cannot query."""

    actions = None
    show_full_result_count = False
    paginator = _BoundedPaginator
    app_view: LedgerView

    def __init__(self, model: type[Any], site: admin.AdminSite) -> None:
        for field in model._meta.fields:
            if isinstance(field, MicrosecondsField):  # Django would leave out the seconds, and not name the zone
                setattr(self, f"shown_{field.name}", _shown_time(field))
        super().__init__(model, site)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        names = [f"shown_{one.name}" if isinstance(one, MicrosecondsField) else one.name for one in self.opts.fields]
        return [*names, *(["page"] if page_url() else [])]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return self.get_fields(request, obj)

    @admin.display(description="")
    def page(self, row: Schedule | Run) -> str:
        """A link to the page."""
        url = page_url(self.app_view.noun, str(row.name if isinstance(row, Schedule) else row.pk))
        return "" if url is None else str(format_html('<a href="{}">open on the page</a>', url))

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).using(ledger_alias())

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if ledger_alias() is None:
            return self.app_view.list(self, request)
        changelist_view = super().changelist_view
        return self._asked(request, lambda: changelist_view(request, extra_context))

    def add_view(self, request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
        raise PermissionDenied

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        if ledger_alias() is None:
            return self.app_view.show(self, request, object_id)
        change_view = super().change_view
        return self._asked(request, lambda: change_view(request, object_id, *args, **kwargs))

    def _asked(self, request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
        """The view, or why there is nothing to see."""
        try:
            with transaction.atomic(using=ledger_alias()):  # the rest of the request may need its transaction
                answer = view()
                if isinstance(answer, TemplateResponse):
                    answer.render()  # which asks for the rows
                return answer
        except (DatabaseError, OstinatoError) as error:
            is_missing = getattr(error.__cause__, "sqlstate", None) in _MISSING
            problem = _NOT_THERE if is_missing else f"the ledger cannot be read just now: {error}"
            return self.app_view.unavailable(self, request, problem)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        raise PermissionDenied

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        return self.change_view(request, object_id)


@admin.register(Schedule)
class ScheduleAdmin(_LedgerAdmin):
    """Schedules."""

    app_view = ScheduleView()
    list_display = ("name", "shown_timing", "enabled", "broken", "shown_next_at", "task", "page")
    list_filter = ("enabled", "orphaned")
    search_fields = ("name", "task")
    search_help_text = "A part of the name of a schedule or its task."

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["shown_timing" if name == "timing" else name for name in super().get_fields(request, obj)]

    @admin.display(description="timing", ordering="timing")
    def shown_timing(self, row: Schedule) -> str:
        """Without the dates of its calendars."""
        return folded(str(row.timing))


@admin.register(Run)
class RunAdmin(_LedgerAdmin):
    """Runs."""

    app_view = RunView()
    list_display = (
        *("id", "schedule", "task", "state", "reason"),
        *("shown_due_at", "shown_started_at", "shown_finished_at", "page"),
    )
    list_filter = ("state", "trigger", "due_at")
    list_select_related = ("schedule",)
    search_fields = ("=id", "task", "schedule__name", "=session")
    search_help_text = "The number of a run, a part of the name of its schedule or task, or its session."

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None and found.result is not None:
            jobs = get_jobs()
            answer = as_shown(run_answer(jobs.runs.get(found.pk), jobs.settings.tz), request.user)
            found.result = msgspec.json.encode(answer.result).decode()
        return found

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        # Who could filter by a part of a result could guess what is hidden in it.
        return not lookup.startswith("result") and bool(super().lookup_allowed(lookup, value, request))
