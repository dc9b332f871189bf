"""How the backend is configured: what the check framework says of it, and transactions that it joins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ostinato import Ostinato
from ostinato.errors import StoreError
from ostinato.testing import drain, rehearse
from tests.django_tasks.test_enqueueing import backend, overridden
from tests.transactions.callers import configure_django

pytestmark = pytest.mark.usefixtures("project")


def checked(**params: Any) -> dict[str, str]:
    """What the check framework is told, by its id; that the app is not installed in this process is left out."""
    with overridden(**params):
        return {str(one.id): str(one.msg) for one in backend().check() if one.id != "ostinato.E001"}


def test_a_project_without_the_app_is_told_that_nothing_runs_its_tasks() -> None:
    (told,) = backend().check()
    assert told.id == "ostinato.E001"
    assert told.is_serious()
    assert "INSTALLED_APPS" in told.hint


def test_a_lane_of_a_queue_that_cannot_be_used_is_warned_of() -> None:
    assert checked(QUEUES=["default"], OPTIONS={"lanes": {"letters": "team"}}) == {
        "ostinato.W001": "OPTIONS['lanes'] of TASKS['default'] names queues that are not in QUEUES: letters."
    }
    assert checked(QUEUES=["default", "letters"], OPTIONS={"lanes": {"letters": "team"}}) == {}
    assert checked(QUEUES=[], OPTIONS={"lanes": {"letters": "team"}}) == {}


@pytest.mark.parametrize(("alias", "why"), [("elsewhere", "not in DATABASES"), ("default", "which is sqlite")])
def test_a_transaction_that_cannot_be_joined_is_an_error(alias: str, why: str, jobs: Ostinato, letters: Any) -> None:
    from django.core.exceptions import ImproperlyConfigured

    configure_django("sqlite:///:memory:")
    (told,) = checked(OPTIONS={"transaction": alias}).values()
    assert why in told
    with overridden(OPTIONS={"transaction": alias}), pytest.raises(ImproperlyConfigured, match=why):
        letters.add.enqueue(1)
    assert jobs.runs.list() == []


@pytest.fixture
def shared(project: None, postgres_url: str) -> Iterator[Ostinato]:
    """The ledger in the PostgreSQL of DATABASES["default"]."""
    from ostinato.integrations.django import jobs

    connection = configure_django(postgres_url)
    with rehearse(jobs, db=postgres_url) as app, overridden(OPTIONS={"transaction": "default"}):
        yield app
    connection.close()
    configure_django("sqlite:///:memory:")


def test_a_task_is_committed_or_rolled_back_with_the_transaction_that_it_is_enqueued_in(
    shared: Ostinato, letters: Any
) -> None:
    from django.db import transaction
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued

    heard: list[str] = []

    def hear(task_result: Any, **_: Any) -> None:
        heard.append(task_result.id)

    task_enqueued.connect(hear)
    assert checked(OPTIONS={"transaction": "default"}) == {}
    with transaction.atomic():
        kept = letters.add.enqueue(1, 2)
        assert drain(shared) == 0
        with pytest.raises(TaskResultDoesNotExist):
            letters.add.get_result(kept.id)
        assert heard == []
    with transaction.atomic():
        lost = letters.add.enqueue(1, 2)
        transaction.set_rollback(True)
    at_once = letters.add.enqueue(3, 4)
    task_enqueued.disconnect(hear)
    assert heard == [kept.id, at_once.id]
    assert drain(shared) == 2
    assert [letters.add.get_result(each.id).return_value for each in (kept, at_once)] == [3, 7]
    with pytest.raises(TaskResultDoesNotExist):
        letters.add.get_result(lost.id)


def test_while_tests_run_the_configured_ledger_is_judged_and_the_one_in_memory_takes_tasks_at_once(
    project: None, postgres_url: str, letters: Any
) -> None:
    from django.db import transaction
    from django.test import override_settings
    from django.test.utils import setup_test_environment, teardown_test_environment

    from ostinato.integrations.django import jobs

    connection = configure_django(postgres_url)
    setup_test_environment()
    try:
        with override_settings(OSTINATO={}), overridden(OPTIONS={"transaction": "default"}):
            assert jobs.settings.db == "sqlite://:memory:"
            assert checked(OPTIONS={"transaction": "default"}) == {}
            with transaction.atomic():
                result = letters.add.enqueue(1, 2)
                assert drain(jobs) == 1
                transaction.set_rollback(True)
            assert letters.add.get_result(result.id).return_value == 3
            with rehearse(jobs, eager=True), transaction.atomic():
                assert letters.add.enqueue(3, 4).return_value == 7
        with override_settings(OSTINATO={"db": "sqlite:///jobs.db"}):
            (told,) = checked(OPTIONS={"transaction": "default"}).values()
            assert "the ledger is not in PostgreSQL" in told
    finally:
        teardown_test_environment()
        jobs.stop()
        connection.close()
        configure_django("sqlite:///:memory:")


async def test_a_coroutine_joins_it_by_the_thread_of_the_sync_code(shared: Ostinato, letters: Any) -> None:
    from asgiref.sync import sync_to_async
    from django.db import connections

    result = await letters.add.aenqueue(1, 2)
    assert (await letters.add.aget_result(result.id)).status == "READY"
    await sync_to_async(connections.close_all)()


def test_another_postgresql_is_refused(shared: Ostinato, letters: Any, empty_postgres_url: str) -> None:
    from django.core.exceptions import ImproperlyConfigured

    connection = configure_django(empty_postgres_url)
    with pytest.raises(StoreError, match="does not lead to the database of the ledger"):
        letters.add.enqueue(1)
    outbox = shared.outbox("default")
    outbox.create()
    with pytest.raises(ImproperlyConfigured, match="another PostgreSQL than DATABASES"):
        letters.add.enqueue(1)
    assert list(outbox.list()) == []
    connection.close()
    assert shared.runs.list() == []
