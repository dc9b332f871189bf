"""A project with Django's tasks, in this process: its settings are those of the tests here, and its ledger is a new one
for each test."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from ostinato import Ostinato
from ostinato.testing import FakeClock, rehearse
from tests.databases import url_of
from tests.transactions.callers import configure_django

BACKEND = "ostinato.integrations.django.OstinatoBackend"
LETTERS = "tests.django_tasks.letters"
SUBCLASS = "tests.django_tasks.registered_post.RegisteredPost"
TASKS: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": BACKEND, "QUEUES": ["default", "letters"]},
    "patient": {"BACKEND": BACKEND, "OPTIONS": {"retry": {"max": 2, "base": "10s", "spread": 0}}},
    "open": {"BACKEND": BACKEND, "QUEUES": []},
    "registered": {"BACKEND": SUBCLASS},
}


@pytest.fixture(scope="module")
def project() -> Iterator[None]:
    """The settings of Django: those that this process has already, and ours."""
    from django.conf import settings
    from django.test import override_settings

    if not settings.configured:
        configure_django("sqlite:///:memory:")
    settings.SECRET_KEY = "a key of tests"  # to override it cannot be undone where there was none
    with override_settings(TASKS=TASKS, OSTINATO={"db": "sqlite://:memory:"}, USE_TZ=True):
        import_module(LETTERS)  # while its backends are there, which tests may replace
        yield


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def jobs(project: None, clock: FakeClock) -> Iterator[Ostinato]:
    """The project's Ostinato on a ledger in memory."""
    from ostinato.integrations.django import jobs

    with rehearse(jobs, clock) as app:
        yield app


@pytest.fixture
def jobs_anywhere(request: pytest.FixtureRequest, project: None, clock: FakeClock, tmp_path: Any) -> Iterator[Ostinato]:
    """The same on the databases that the test names."""
    from ostinato.integrations.django import jobs

    with rehearse(jobs, clock, db=url_of(request, tmp_path)) as app:
        yield app


@pytest.fixture
def letters(project: None) -> Any:
    """The tasks."""
    found = import_module(LETTERS)
    found.done.clear()
    return found
