"""The project's Ostinato: one object from the first import on, whose settings are Django's, also while tests override
them. `configuration.py` reads those; `register` and `jobs` of the package lead here."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.core.signals import setting_changed

from ostinato.app import Ostinato
from ostinato.config import Settings
from ostinato.integrations.django.configuration import RELEVANT, app_name, is_testing, read_settings, remember_databases
from ostinato.integrations.django.connections import (
    around_call,
    around_coroutine,
    around_thread,
    call_for_coroutine,
    check_threads,
    complete,
)
from ostinato.integrations.django.process import state_of_tests

__all__ = ["DjangoOstinato", "get_jobs"]


class DjangoOstinato(Ostinato):
    """An app whose settings follow those of Django, until somebody gives it others."""

    def __init__(self) -> None:
        self._given: Settings | None = None
        """Of the command line, or of `rehearse`."""
        self._overrides = 0
        """How often OSTINATO is overridden just now."""
        self._for_tests = is_testing()
        self._current = self._before = read_settings()
        super().__init__(settings=self._current, name=app_name())
        self.registry.decorator = "@register"
        contexts = self.registry.contexts
        contexts.enter, contexts.enter_async, contexts.enter_once = around_call, around_coroutine, around_thread
        contexts.complete, contexts.call_for_coroutine = complete, call_for_coroutine
        contexts.check_threads = check_threads
        contexts.process_setup = "ostinato.integrations.django.process:setup"
        contexts.process_state = state_of_tests

    @property
    def settings(self) -> Settings:
        if self._given is not None:
            return self._given
        if self._for_tests != is_testing():
            self._read()
        return self._current

    @settings.setter
    def settings(self, value: Settings) -> None:
        # Whoever gives back what it found here lets them follow Django again.
        if self._given is None:
            self._before = self._current
        self._given = None if value is self._current or value is self._before else value

    def _read(self) -> None:
        self._for_tests = is_testing()
        self._current = read_settings(is_overridden=self._overrides > 0)

    def follow(self, setting: str, *, is_override: bool) -> None:
        """A setting of Django has changed. If it is another ledger now, the next use opens that."""
        if setting == "OSTINATO":
            self._overrides += 1 if is_override else -1
        before = self._current
        self._read()
        container = self._host.container
        if self._given is not None or container is None:
            return
        if (before.db, before.schema) != (self._current.db, self._current.schema):
            self.stop()
        else:  # one in memory would be empty afterwards
            container.use(self._current)


@cache
def get_jobs() -> DjangoOstinato:
    """The project's app."""
    remember_databases()
    setting_changed.connect(_on_setting_changed, dispatch_uid="ostinato.settings")
    return DjangoOstinato()


def _on_setting_changed(*, setting: str, enter: bool, **_: Any) -> None:
    if setting in RELEVANT:
        get_jobs().follow(setting, is_override=enter)
