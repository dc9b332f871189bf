"""Run by Django's own test runner inside the example: tasks, transactions, settings, the admin, as a user tests them.

`test_inside.py` copies this file into the project, once on SQLite and once on PostgreSQL.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.request import urlopen
from zoneinfo import ZoneInfo

from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, router, transaction
from django.test import LiveServerTestCase, TestCase, TransactionTestCase, override_settings
from django.utils.timezone import override as override_zone
from psycopg.conninfo import conninfo_to_dict
from shop.models import Order
from shop.tasks import confirm, count_orders

from ostinato import Http, NotFound
from ostinato.config import switched_off, without_password
from ostinato.errors import StoreError
from ostinato.integrations.django import database_url, jobs, register
from ostinato.integrations.django.models import Run, Schedule, ledger_alias
from ostinato.testing import drain, rehearse, simulate

IN_POSTGRES = connection.vendor == "postgresql"


def ledger() -> str:
    """Where the ledger is during a test that needs it beside Django's tables, if it can be."""
    return database_url() if IN_POSTGRES else "sqlite://:memory:"


def forget_ledger() -> None:
    """Django empties its own tables after a test."""
    if IN_POSTGRES:
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA ostinato CASCADE")


@register
def fail() -> None:
    """Fails once."""
    raise ValueError("no stock")


@contextmanager
def serving_ok() -> Iterator[int]:
    """The port of a server that answers everything with 200."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


class TaskTests(TestCase):
    """In the transaction of a test."""

    def test_a_task_called_plainly_sees_what_is_not_committed(self) -> None:
        order = Order.objects.create(mail="ada@example.org")
        self.assertEqual(confirm(order.pk), "sent to ada@example.org")

    def test_eager_runs_it_inside_the_transaction_of_the_test(self) -> None:
        order = Order.objects.create(mail="ada@example.org")
        with rehearse(jobs, eager=True):
            self.assertEqual(confirm.enqueue(order.pk).result(), "sent to ada@example.org")
        order.refresh_from_db()
        self.assertTrue(order.confirmed)

    def test_on_commit_waits_for_the_commit(self) -> None:
        with rehearse(jobs, eager=True):
            with self.captureOnCommitCallbacks(execute=True):
                order = Order.objects.create(mail="ada@example.org")
                mail = confirm.using(on_commit=True).enqueue(order.pk)
                self.assertIsNone(mail.id)
            self.assertEqual(mail.wait(timeout=60).result, "sent to ada@example.org")

    def test_the_ledger_of_tests_is_in_memory(self) -> None:
        self.assertEqual(jobs.settings.db, "sqlite://:memory:")
        self.assertEqual(jobs.runs.get(count_orders.enqueue().id).state, "queued")
        jobs.stop()
        self.assertFalse(Path("ostinato.db").exists())


class SettingTests(TestCase):
    """override_settings."""

    def test_overridden_settings_hold_until_the_end_of_the_block(self) -> None:
        db = f"sqlite:///{Path('other.db').absolute()}"
        with override_settings(OSTINATO={"db": db, "slots": 7}, TIME_ZONE="Asia/Tokyo", SCHEDULER_ENABLED=False):
            self.assertEqual((jobs.settings.db, jobs.settings.slots, jobs.settings.tz), (db, 7, "Asia/Tokyo"))
            self.assertIn("SCHEDULER_ENABLED is False in the settings of Django", str(switched_off(jobs.settings)))
            with rehearse(jobs):
                self.assertEqual(jobs.settings.db, "sqlite://:memory:")
            self.assertEqual(jobs.settings.db, db)
            self.assertEqual(len(jobs.runs.list()), 0)
            self.assertTrue(Path("other.db").exists())
        self.assertEqual((jobs.settings.db, jobs.settings.slots), ("sqlite://:memory:", 256))
        self.assertEqual(jobs.settings.tz, "Europe/Berlin")
        self.assertIsNone(switched_off(jobs.settings))

    def test_settings_follow_django_after_a_rehearsal_that_an_override_crossed(self) -> None:
        with rehearse(jobs), override_settings(OSTINATO={"slots": 7}):
            pass
        with override_settings(OSTINATO={"slots": 8}):
            self.assertEqual(jobs.settings.slots, 8)


class UrlTests(TestCase):
    """database_url."""

    def test_it_leads_to_where_django_goes(self) -> None:
        if not IN_POSTGRES:
            self.assertRaisesMessage(ImproperlyConfigured, "is sqlite, which the ledger cannot be in", database_url)
            return
        given = {
            "NAME": "a shop",
            "USER": "ada@shop",
            "PASSWORD": "p@ss/word?&%",
            "HOST": "::1",
            "PORT": 5433,
            "OPTIONS": {"sslmode": "require", "pool": True, "options": "-c lock_timeout=5s"},
        }
        with patch.dict(connection.settings_dict, given):
            self.assertEqual(
                conninfo_to_dict(database_url()),
                {
                    "dbname": "a shop",
                    "user": "ada@shop",
                    "password": "p@ss/word?&%",
                    "host": "::1",
                    "port": "5433",
                    "sslmode": "require",
                    "options": "-c lock_timeout=5s",
                },
            )
            self.assertNotIn("ss/word", without_password(database_url()))


class DrainTests(TransactionTestCase):
    """What other threads see is committed."""

    def setUp(self) -> None:
        self.addCleanup(forget_ledger)
        self.enterContext(rehearse(jobs, db=ledger()))

    def test_drain_runs_sync_tasks_in_threads_and_coroutines_with_the_async_orm(self) -> None:
        order = Order.objects.create(mail="ada@example.org")
        mail, count = confirm.enqueue(order.pk), count_orders.enqueue()
        drain(jobs)
        self.assertEqual((mail.result(), count.result()), ("sent to ada@example.org", 1))

    def test_what_code_schedules_runs_on_the_fake_clock(self) -> None:
        Order.objects.create(mail="ada@example.org")
        simulate(jobs, until="2026-01-01T03:00+01:00")  # two hours of its clock
        (run,) = jobs.runs.list(schedule="delete_unconfirmed")
        self.assertEqual((run.state, run.result, run.zone), ("succeeded", 1, "Europe/Berlin"))
        self.assertEqual(Order.objects.count(), 0)

    def test_on_commit_leaves_nothing_after_a_rollback(self) -> None:
        with transaction.atomic():
            confirm.using(on_commit=True).enqueue(1)
            transaction.set_rollback(True)
        self.assertEqual(len(jobs.runs.list()), 0)

    def test_a_run_belongs_to_the_transaction_of_djangos_connection(self) -> None:
        if not IN_POSTGRES:
            self.skipTest("the ledger is in another database: an outbox would be needed")
        with transaction.atomic():
            gone = confirm.using(connection=connection).enqueue(1)
            transaction.set_rollback(True)
        self.assertRaises(NotFound, gone.get)
        with transaction.atomic():
            order = Order.objects.create(mail="ada@example.org")
            mail = confirm.using(connection=connection).enqueue(order.pk)
        drain(jobs)
        self.assertEqual(mail.get().result, "sent to ada@example.org")


class OutboxTests(TransactionTestCase):
    """A ledger in another database than the project's."""

    def test_errors_name_the_commands_of_the_project(self) -> None:
        makes_it = "'manage.py ostinato outbox create default' makes it"
        ledger = f"sqlite:///{Path('apart.db').absolute()}"
        with rehearse(jobs, db=ledger), transaction.atomic(), self.assertRaisesMessage(StoreError, makes_it):
            confirm.using(connection=connection).enqueue(1)
        if IN_POSTGRES:  # a thread of its own cannot reach a database in memory
            with self.assertRaisesMessage(StoreError, makes_it):
                jobs.outbox("default").list()


class AdminTests(TransactionTestCase):
    """The admin shows, and changes nothing."""

    def setUp(self) -> None:
        self.addCleanup(forget_ledger)
        self.enterContext(rehearse(jobs, db=ledger()))
        self.boss = User.objects.create_superuser("boss")
        self.client.force_login(self.boss)
        jobs.schedules.add("nightly/all", "daily 03:00", "fail", retry=0)
        jobs.schedules.add("weekly", "weekly mon 09:00", "count_orders", enabled=False)
        jobs.schedules.trigger("nightly/all")
        drain(jobs)
        (self.run,) = jobs.runs.list()

    def get(self, path: str) -> Any:
        return self.client.get(f"/admin/ostinato/{path}")

    def test_schedules_are_listed_searched_filtered_and_shown(self) -> None:
        self.assertEqual(ledger_alias(), "default" if IN_POSTGRES else None)
        page = self.get("schedule/")
        self.assertContains(page, "nightly/all")
        self.assertContains(page, "weekly mon 09:00")
        self.assertNotContains(self.get("schedule/?q=week"), "nightly/all")
        off = "enabled__exact=0" if IN_POSTGRES else "state=off"
        self.assertNotContains(self.get(f"schedule/?{off}"), "nightly/all")
        self.assertContains(self.get(f"schedule/{self.key('nightly/all')}/change/"), "daily 03:00")

    def key(self, name: str) -> str:
        return str(Schedule.objects.get(name=name).pk) if IN_POSTGRES else str(quote(name))

    def test_runs_are_listed_searched_filtered_and_shown(self) -> None:
        self.assertContains(self.get("run/"), "no stock")
        state = "state__exact" if IN_POSTGRES else "state"
        self.assertContains(self.get(f"run/?{state}=failed"), "no stock")
        self.assertNotContains(self.get(f"run/?{state}=succeeded"), "no stock")
        self.assertContains(self.get(f"run/?q={self.run.id}"), "no stock")
        self.assertContains(self.get("run/?q=nightly/all"), "no stock")
        self.assertNotContains(self.get("run/?q=other"), "no stock")
        self.assertContains(self.get(f"run/{self.run.id}/change/"), "ValueError: no stock")
        if IN_POSTGRES:
            self.assertContains(self.get("run/?due_at__gte=2020-01-01+00%3A00%3A00%2B00%3A00"), "no stock")
            found = Run.objects.get(schedule__name="nightly/all")
            self.assertEqual(found.due_at, self.run.due_at)
            self.assertIsNone(Run.objects.filter(pk=found.pk).exclude(state="failed").first())

    def test_runs_are_found_by_a_part_of_the_name_of_their_schedule_or_task_or_by_their_session(self) -> None:
        jobs.schedules.add("fail", "daily 03:00", "fail", retry=0)  # named as its task, as those of the code are
        jobs.schedules.trigger("fail")
        fail.using(retry=0, session="desk").enqueue()
        drain(jobs)
        everything = {run.id for run in jobs.runs.list()}
        self.assertEqual(len(everything), 3)
        self.assertEqual(self.found("fai"), everything)
        self.assertEqual(self.found("FAIL"), everything)
        self.assertEqual(self.found("ight"), {self.run.id})
        self.assertEqual(self.found("desk"), {max(everything)})
        self.assertEqual(self.found("other"), set())

    def found(self, search: str) -> set[int]:
        return {int(id) for id in re.findall(r"(\d+)/change/", self.get(f"run/?q={search}").content.decode())}

    def test_times_are_to_the_second_and_say_their_zone(self) -> None:
        pages = ["run/", f"run/{self.run.id}/change/"]
        for zone, name in ((None, "Europe/Berlin"), ("Asia/Tokyo", "Asia/Tokyo")):
            shown = f"{self.run.due_at.astimezone(ZoneInfo(name)):%Y-%m-%d %H:%M:%S %Z}"
            with override_zone(zone):
                for page in pages:
                    self.assertContains(self.get(page), shown)
        shown = f"{self.run.due_at.astimezone(ZoneInfo('Europe/Berlin')):%Y-%m-%d %H:%M:%S %Z}"
        with override_settings(USE_TZ=False):
            for page in pages:
                self.assertContains(self.get(page), shown)
            if IN_POSTGRES:
                self.assertIsNone(Run.objects.get().due_at.tzinfo)
                self.assertEqual(Run.objects.get(due_at=Run.objects.get().due_at).pk, self.run.id)
        self.assertContains(self.get(f"schedule/{self.key('nightly/all')}/change/"), "03:00:00 CE")

    def test_no_way_of_the_orm_writes_the_ledger(self) -> None:
        schedule, run = Schedule(pk=1, name="nightly/all"), Run(pk=self.run.id, state="queued")
        writes: list[Callable[[], Any]] = [
            run.save,
            run.delete,
            lambda: Run.objects.update(state="queued"),
            lambda: Run.objects.filter(pk=run.pk).delete(),
            lambda: Run.objects.all()._raw_delete("default"),
            lambda: Run.objects.bulk_create([run]),
            lambda: Run.objects.bulk_update([run], ["state"]),
            lambda: Run.objects.create(pk=9),
            lambda: Run.objects.update_or_create(pk=run.pk, defaults={"state": "queued"}),
            lambda: Run._base_manager.update(state="queued"),
            lambda: schedule.run_set.update(state="queued"),
            lambda: router.db_for_write(Run),
        ]
        for write in writes:
            self.assertRaisesMessage(TypeError, "which Django only reads", write)
        self.assertEqual(jobs.runs.get(self.run.id).state, "failed")

    def test_viewers_see_no_more_than_on_the_page(self) -> None:
        with serving_ok() as port:
            jobs.stop()
            jobs.settings = replace(jobs.settings, http_allow=("127.0.0.1",))
            run = jobs.execute(Http("GET", f"http://127.0.0.1:{port}/hook?key=s3cret"))
        self.assertEqual(run.state, "succeeded")
        self.assertContains(self.get(f"run/{run.id}/change/"), "s3cret")
        eve = User.objects.create_user("eve", is_staff=True)
        eve.user_permissions.add(Permission.objects.get(codename="view_run"))
        self.client.force_login(eve)
        page = self.get(f"run/{run.id}/change/")
        self.assertContains(page, "hook?key=***")
        self.assertNotContains(page, "s3cret")
        if IN_POSTGRES:
            self.assertEqual(self.get("run/?result__contains=s3cret").status_code, 400)
        eve.user_permissions.add(Permission.objects.get(codename="operate"))
        self.assertContains(self.get(f"run/{run.id}/change/"), "s3cret")

    def test_numbers_that_no_run_has_find_nothing(self) -> None:
        huge = "9" * 20
        for path in (f"run/?before={huge}", f"run/?q={huge}", f"run/{huge}/change/", "run/x/change/"):
            self.assertIn(self.get(path).status_code, (200, 302, 404), path)

    def test_all_schedules_can_be_reached(self) -> None:
        for number in range(105):
            jobs.schedules.add(f"many-{number:03}", "daily 03:00", "fail")
        pages = [self.get("schedule/"), self.get("schedule/?p=2" if IN_POSTGRES else "schedule/?before=100")]
        self.assertContains(pages[0], "?p=2" if IN_POSTGRES else "before=100")
        self.assertNotContains(pages[1], "before=200")
        found = {name for page in pages for name in re.findall(r"many-\d{3}", page.content.decode())}
        self.assertEqual(len(found), 105)

    def test_a_ledger_that_is_away_is_told(self) -> None:
        jobs.stop()
        if IN_POSTGRES:
            with connection.cursor() as cursor:
                cursor.execute("ALTER SCHEMA ostinato RENAME TO away")
        else:
            Path("broken.db").write_text("x" * 5000)
            jobs.settings = replace(jobs.settings, db=f"sqlite:///{Path('broken.db').absolute()}")
        for path in ("run/", "schedule/", f"run/{self.run.id}/change/", "schedule/1/change/"):
            page = self.get(path)
            self.assertEqual(page.status_code, 503, path)
            self.assertIn("the ledger is not there yet" if IN_POSTGRES else "errornote", page.content.decode())
        if IN_POSTGRES:
            with connection.cursor() as cursor:
                cursor.execute("ALTER SCHEMA away RENAME TO ostinato")
                cursor.execute("ALTER TABLE ostinato.runs RENAME COLUMN reason TO other")
            page = self.get("run/").content.decode()
            self.assertIn("the ledger cannot be read just now: column runs.reason does not exist", page)

    def test_links_lead_to_the_page(self) -> None:
        jobs.settings = replace(jobs.settings, public_url="https://shop.example.org/jobs")
        self.assertContains(self.get(f"run/{self.run.id}/change/"), f"https://shop.example.org/jobs/runs/{self.run.id}")
        url = "https://shop.example.org/jobs/schedules/nightly%2Fall"
        self.assertContains(self.get(f"schedule/{self.key('nightly/all')}/change/"), url)

    def test_nothing_can_be_added_changed_or_deleted_even_by_a_superuser(self) -> None:
        one = f"run/{self.run.id}"
        self.assertEqual(self.get("run/add/").status_code, 403)
        self.assertEqual(self.get(f"{one}/delete/").status_code, 403)
        self.assertEqual(self.client.post(f"/admin/ostinato/{one}/change/", {"state": "queued"}).status_code, 403)
        self.assertEqual(self.client.post("/admin/ostinato/run/add/", {"state": "queued"}).status_code, 403)
        self.assertNotContains(self.get(f"{one}/change/"), 'name="_save"')
        self.assertEqual(jobs.runs.get(self.run.id).state, "failed")
        self.assertEqual(self.get("run/999999/change/").status_code, 302 if IN_POSTGRES else 404)

    def test_staff_need_the_permission_to_view(self) -> None:
        ada = User.objects.create_user("ada", is_staff=True)
        self.client.force_login(ada)
        self.assertEqual(self.get("run/").status_code, 403)
        ada.user_permissions.add(Permission.objects.get(codename="view_run"))
        self.assertEqual(self.get("run/").status_code, 200)


class CommandTests(TransactionTestCase):
    """call_command."""

    def setUp(self) -> None:
        self.enterContext(rehearse(jobs))

    def called(self, *words: str) -> str:
        out = StringIO()
        call_command(*words, stdout=out)
        return out.getvalue()

    def test_commands_write_to_the_stream_that_they_are_given(self) -> None:
        order = Order.objects.create(mail="ada@example.org")
        self.assertIn("every 5m", self.called("list_tasks"))
        self.assertEqual(self.called("run_task", "confirm", "--args", f"[{order.pk}]"), '"sent to ada@example.org"\n')
        run = json.loads(self.called("run_task", "confirm", "--args", json.dumps({"order": order.pk}), "--json"))
        self.assertEqual((run["state"], run["result"]), ("succeeded", "sent to ada@example.org"))
        self.assertEqual(self.called("run_task", "count_orders", "--args", "{}"), "1\n")
        with self.assertRaisesMessage(CommandError, "no stock"):
            self.called("run_task", "fail")
        with self.assertRaisesMessage(CommandError, "task 'nope' is not registered"):
            self.called("run_task", "nope")
        with self.assertRaisesMessage(CommandError, "is not JSON"):
            self.called("run_task", "confirm", "--args", "[")
        self.assertEqual(
            json.loads(self.called("ostinato", "timing", "daily 03:00", "--json"))["zone"], "Europe/Berlin"
        )
        with self.assertRaisesMessage(CommandError, "ostinato why nope ended with 3"):
            call_command("ostinato", "why", "nope", stderr=(said := StringIO()))
        self.assertIn("'manage.py ostinato schedule ls' lists them", said.getvalue())
        jobs.schedules.add("weekly", "weekly mon 09:00", "count_orders")
        shown = self.called("task_schedule")
        self.assertEqual(len(jobs.schedules.list()), 1)  # the app is as it was
        self.assertIn("declared; it is stored when an engine starts", shown)
        self.assertRegex(shown, r"weekly +weekly mon 09:00 +on +\d{4}-")
        listed = {one["name"]: one for one in json.loads(self.called("task_schedule", "--json"))}
        self.assertEqual(listed["weekly"]["state"], "on")
        one = {"timing": "daily 03:00", "zone": "Europe/Berlin", "enabled": True, "state": "declared"}
        self.assertEqual(listed["delete_unconfirmed"], {"name": "delete_unconfirmed", **one})


class LiveServerTests(LiveServerTestCase):
    """A server in a test is not one that serves."""

    def test_it_starts_no_engine(self) -> None:
        with urlopen(f"{self.live_server_url}/admin/login/") as answer:
            self.assertEqual(answer.status, 200)
        self.assertEqual(jobs.nodes.list(), [])
