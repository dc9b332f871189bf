"""The ledger in the eyes of Django: schedules and runs as unmanaged models, to be read and never written.

They can be queried where the ledger is in a PostgreSQL of DATABASES; `router.py` finds it. Everywhere else they only
carry the names and permissions of the admin, which then asks the app.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, models
from django.utils.timezone import is_naive, make_aware, make_naive

from ostinato.clock import from_micros, to_micros
from ostinato.integrations.django.configuration import database_url
from ostinato.integrations.django.scheduler import get_jobs
from ostinato.models.states import RunState, Trigger

__all__ = ["READ_ONLY", "MicrosecondsField", "Run", "Schedule", "ledger_alias"]


READ_ONLY = "schedules and runs are rows of the ledger, which Django only reads: use ostinato.integrations.django.jobs"


def ledger_alias() -> str | None:
    """The database of DATABASES that the ledger is in; None if it is in another."""
    ledger = get_jobs().settings.db
    for alias in connections:
        try:
            if connections[alias].vendor == "postgresql" and database_url(alias) == ledger:
                return str(alias)
        except ImproperlyConfigured:  # one that this process cannot use
            continue
    return None


class MicrosecondsField(models.DateTimeField):
    """An instant, stored as the microseconds since 1970; without a zone if USE_TZ is off, as Django has its times."""

    def get_internal_type(self) -> str:
        return "BigIntegerField"

    def from_db_value(self, value: int | None, *_: Any) -> datetime | None:
        if value is None:
            return None
        moment = from_micros(value)
        return moment if settings.USE_TZ else make_naive(moment)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> int | None:
        moment = self.get_prep_value(value)
        if moment is None:
            return None
        return to_micros(make_aware(moment) if is_naive(moment) else moment)


def _table(name: str) -> str:
    # Quoted already, so that Django takes it as it is: the schema is not a part of the name.
    return f'"{get_jobs().settings.schema}"."{name}"'


def _refuse(*_: Any, **__: Any) -> Any:
    raise TypeError(READ_ONLY)


class _ReadOnlyQuerySet(models.QuerySet):
    """Rows that only Ostinato writes. What else writes (`create`, `update_or_create`, …) goes through these, or saves
    a row."""

    update = _update = delete = _raw_delete = _refuse
    bulk_create = bulk_update = _insert = _refuse


class _ReadOnly(models.Model):
    """A row that only Ostinato writes."""

    objects = _ReadOnlyQuerySet.as_manager()

    class Meta:
        abstract = True
        # What Django itself asks for rows, it asks this one: for the related ones, and for all that it would delete.
        base_manager_name = "objects"

    save_base = delete = _refuse


class Schedule(_ReadOnly):
    """A durable, named row: timing, work and policy."""

    id = models.BigIntegerField(primary_key=True)
    name = models.TextField(unique=True)
    timing = models.TextField()
    zone = models.TextField()
    kind = models.TextField()
    task = models.TextField(null=True)
    project = models.TextField(null=True)
    owner = models.TextField()
    enabled = models.BooleanField()
    broken = models.TextField(null=True)
    orphaned = models.BooleanField()
    off_note = models.TextField(null=True)
    note = models.TextField(null=True)
    next_at = MicrosecondsField(null=True, verbose_name="next run")
    remaining = models.BigIntegerField(null=True)
    failures = models.BigIntegerField()
    created_at = MicrosecondsField()
    updated_at = MicrosecondsField()

    class Meta(_ReadOnly.Meta):
        managed = False
        db_table = _table("schedules")
        ordering = ("name",)
        default_permissions = ("view",)
        permissions = (("operate", "Can act on schedules and runs"),)

    def __str__(self) -> str:
        return str(self.name)


class Run(_ReadOnly):
    """One due time, or one request, and what became of it."""

    id = models.BigIntegerField(primary_key=True)
    schedule = models.ForeignKey(Schedule, models.DO_NOTHING, null=True, db_constraint=False)
    kind = models.TextField()
    task = models.TextField(null=True)
    project = models.TextField(null=True)
    state = models.TextField(choices=[(str(state), str(state)) for state in RunState])
    cause = models.TextField(null=True)
    reason = models.TextField(null=True)
    trigger = models.TextField(choices=[(str(trigger), str(trigger)) for trigger in Trigger])
    due_at = MicrosecondsField(verbose_name="due")
    last_due_at = MicrosecondsField(null=True)
    count = models.BigIntegerField()
    ready_at = MicrosecondsField()
    started_at = MicrosecondsField(null=True, verbose_name="started")
    finished_at = MicrosecondsField(null=True, verbose_name="finished")
    attempt = models.BigIntegerField()
    lane = models.TextField()
    priority = models.BigIntegerField()
    session = models.TextField(null=True)
    key = models.TextField(null=True)
    node = models.TextField(null=True)
    totals = models.TextField(null=True)
    progress = models.TextField(null=True)
    result = models.TextField(null=True)
    error = models.TextField(null=True)

    class Meta(_ReadOnly.Meta):
        managed = False
        db_table = _table("runs")
        ordering = ("-id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"run {self.id}"
