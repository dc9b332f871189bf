"""Run by Django's own test runner inside the example: that a test reaches the test database alone, from wherever its
code is called, and that a ledger lasts as long as its test.

`test_inside.py` copies this file into the project, once on SQLite and once on PostgreSQL.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from typing import Any
from unittest.mock import patch

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection, connections, transaction
from django.test import TestCase, TransactionTestCase, modify_settings, override_settings
from django.test.utils import _TestState
from shop.models import Order
from shop.tasks import confirm, count_orders

from ostinato import AppEvent, AppEventKind, InvalidInput
from ostinato.integrations.django import jobs, register
from ostinato.integrations.django.configuration import is_testing
from ostinato.integrations.django.serving import _tell
from ostinato.testing import adrain, drain, rehearse, simulate

IN_POSTGRES = connection.vendor == "postgresql"


@register(isolation="process", retry=0)
def delete_orders() -> list[object]:
    """In a process of its own."""
    from django.db import connection

    return [connection.settings_dict["NAME"], Order.objects.all().delete()[0], is_testing(), jobs.settings.db]


@register(isolation="process")
def double(number: int) -> int:
    """Without a database."""
    return 2 * number


@register
async def confirm_all() -> int:
    """A coroutine with sync parts, which enqueues others."""
    async for order in Order.objects.all():
        await confirm.aio.enqueue(order.pk)
    counted: int = await count_orders.aio.result(await count_orders.aio.enqueue())
    return counted


class ProcessTests(TransactionTestCase):
    """isolation="process"."""

    def setUp(self) -> None:
        self.enterContext(rehearse(jobs))

    def test_a_process_of_its_own_has_the_test_database_or_none(self) -> None:
        Order.objects.create(mail="ada@example.org")
        deleted, doubled = delete_orders.enqueue(), double.enqueue(21)
        drain(jobs)
        self.assertEqual(doubled.result(), 42)
        if IN_POSTGRES:
            name = connection.settings_dict["NAME"]
            self.assertTrue(name.startswith("test_"))
            self.assertEqual(deleted.result(), [name, 1, True, "sqlite://:memory:"])
            self.assertEqual(Order.objects.count(), 0)
        else:
            self.assertEqual(deleted.get().state, "failed")
            self.assertIn("the test database 'default' is in the memory of another process", deleted.get().reason or "")
            self.assertEqual(Order.objects.count(), 1)


class EagerTests(TestCase):
    """rehearse(eager=True) in the transaction of a test."""

    def test_coroutines_see_what_is_not_committed(self) -> None:
        order = Order.objects.create(mail="ada@example.org")
        with rehearse(jobs, eager=True):
            self.assertEqual(count_orders.enqueue().result(), 1)
            self.assertEqual(confirm_all.enqueue().result(), 1)
        order.refresh_from_db()
        self.assertTrue(order.confirmed)

    async def test_coroutines_of_an_async_test_do_so_too(self) -> None:
        await Order.objects.acreate(mail="ada@example.org")
        with rehearse(jobs, eager=True):
            self.assertEqual(await confirm_all.aio.result(await confirm_all.aio.enqueue()), 1)
        self.assertTrue(await Order.objects.filter(confirmed=True).aexists())


class RefusalTests(TestCase):
    """The engine's threads do not see the transaction of a test."""

    def test_an_engine_is_refused(self) -> None:
        with rehearse(jobs), transaction.atomic():
            confirm_all.enqueue()
            for drive in (drain, partial(simulate, lasting="1h")):
                with self.assertRaisesMessage(InvalidInput, "use TransactionTestCase, or run tasks in"):
                    drive(jobs)

    async def test_an_engine_is_refused_in_an_async_test(self) -> None:
        with rehearse(jobs), self.assertRaisesMessage(InvalidInput, "rehearse(jobs, eager=True)"):
            await adrain(jobs)


class ConnectionTests(TransactionTestCase):
    """Of code of the project that is no task."""

    def test_checks_and_callbacks_leave_no_connection_open(self) -> None:
        used: list[Any] = []
        told = threading.Event()

        def use() -> bool:
            used.append(connections["default"])
            return bool(Order.objects.count() >= 0)

        def tell(event: AppEvent) -> None:
            if not told.is_set():
                use()
                told.set()

        async def check() -> bool:
            return await sync_to_async(use)()

        jobs.check("stock")(use)
        jobs.check("stock of a coroutine")(check)
        self.addCleanup(lambda: [jobs.registry.checks.pop(name) for name in ("stock", "stock of a coroutine")])
        jobs.on(AppEventKind.RUN_SUCCEEDED, tell)
        with rehearse(jobs):
            jobs.schedules.add("nightly", "daily 03:00", "count_orders", checks=["stock", "stock of a coroutine"])
            jobs.schedules.trigger("nightly")
            drain(jobs)
            self.assertTrue(told.wait(60))
        self.assertGreaterEqual(len(used), 3)
        self.assertNotIn(connections["default"], used)
        if IN_POSTGRES:  # Django does not close a database in memory
            self.assertEqual([one.connection for one in used], [None] * len(used))


class StarterTests(TestCase):
    """What a serving process says."""

    def test_that_its_stderr_is_closed_is_no_error(self) -> None:
        with patch.object(sys, "stderr", None):
            _tell("the engine runs in this process")


class LedgerTests(TestCase):
    """Settings that change while there is a ledger."""

    def test_the_ledger_stays_unless_its_database_changes(self) -> None:
        run = confirm.enqueue(1)
        for name, value in {"ALLOWED_HOSTS": ["example.org"], "TIME_ZONE": "UTC", "SCHEDULER_ENABLED": False}.items():
            with override_settings(**{name: value}):
                self.assertEqual(run.get().state, "queued")
        self.assertEqual(run.get().state, "queued")
        with override_settings(TIME_ZONE="Asia/Tokyo"):
            self.assertEqual(jobs.schedules.add("nightly", "daily 03:00", "count_orders").zone, "Asia/Tokyo")
        with override_settings(OSTINATO={"db": "sqlite://:memory:", "schema": "other"}):
            self.assertEqual(len(jobs.runs.list()), 0)

    def test_apps_that_are_loaded_again_wrap_nothing_again(self) -> None:
        before = (WSGIHandler.__init__, ASGIHandler.__call__)
        with modify_settings(INSTALLED_APPS={"remove": "django.contrib.messages"}):
            pass
        self.assertEqual((WSGIHandler.__init__, ASGIHandler.__call__), before)

    def test_a_test_database_is_enough_to_be_testing(self) -> None:
        with patch.object(_TestState, "saved_data"):  # gone afterwards
            del _TestState.saved_data
            self.assertTrue(is_testing())
            with patch.dict(connection.settings_dict, NAME="another"):
                self.assertFalse(is_testing())
