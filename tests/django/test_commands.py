"""The commands of `manage.py` in processes of their own, and that no other command starts an engine."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from tests.django.projects import Project, copy_example

pytestmark = pytest.mark.timeout(300)

IMPORTS = """from asgiref.sync import sync_to_async
from django.db import connection

from ostinato import RunContext, """
IN_POSTGRES = """
import time
from django.db import connection
from ostinato.integrations.django import jobs
from ostinato.integrations.django.models import Run, ledger_alias
from shop.tasks import backend, backend_of_coroutine

print(ledger_alias(), Run.objects.get().task)
jobs.start()
pids = [task.enqueue().result(60) for task in (backend, backend_of_coroutine)]
deadline = time.monotonic() + 60
with connection.cursor() as cursor:
    while True:  # the server takes a moment to see that a connection has ended
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE pid = ANY(%s)", [pids])
        left = cursor.fetchall()
        if not left or time.monotonic() > deadline:
            break
print(left)
jobs.stop()
"""
WRONG = """
from django.core.exceptions import ImproperlyConfigured
from django.conf import settings
from ostinato.integrations.django.configuration import read_settings

for name, value in (("OSTINATO", {"slots": "many"}), ("OSTINATO", "x.db"), ("SCHEDULER_ENABLED", "maybe")):
    settings.OSTINATO = {}
    setattr(settings, name, value)
    try:
        print(read_settings())
    except ImproperlyConfigured as error:
        print(error)
"""
TASKS = '''

@register(isolation="process")
def apart(run: RunContext, *names: str) -> int:
    """In a process of its own."""
    run.log(f"hello {' and '.join(names)}")
    return int(Order.objects.count())


@register
def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@register
async def backend_of_coroutine() -> int:
    return await sync_to_async(backend.function)()


@register
async def fail() -> None:
    raise ValueError(f"no stock of {await Order.objects.acount()}")
'''
SETTINGS = """
INSTALLED_APPS.append("django.contrib.staticfiles")
STATIC_ROOT = BASE_DIR / "collected"
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = copy_example(tmp_path_factory.mktemp("example"))
    made.add("mysite/settings.py", SETTINGS)
    tasks = made.folder / "shop" / "tasks.py"
    tasks.write_text(tasks.read_text().replace("from ostinato import ", IMPORTS) + TASKS)
    return made


def test_no_other_command_starts_an_engine_or_makes_a_database(project: Project) -> None:
    project.ok("collectstatic", "--noinput", "-v", "0")
    assert "ostinato" not in project.ok("makemigrations", "--check", "--dry-run")
    assert '"model": "ostinato.' not in project.ok("dumpdata")
    # Not even where something makes the application that a server would.
    # To look at the schedules makes none either.
    assert "declared; it is stored when an engine starts" in project.ok("task_schedule")
    assert "ostinato.db" not in {file.name for file in project.folder.iterdir()}
    asked = "import threading, mysite.wsgi, mysite.asgi; print([thread.name for thread in threading.enumerate()])"
    assert project.shell(asked) == "['MainThread']"
    assert not (project.folder / "ostinato.db").exists()


def test_tasks_are_listed_with_what_the_code_schedules(project: Project) -> None:
    listed = {task["name"]: task for task in json.loads(project.ok("list_tasks", "--json"))}
    assert set(listed) >= {"apart", "confirm", "count_orders", "delete_unconfirmed", "fail"}
    assert listed["delete_unconfirmed"]["schedule"] == {
        "timing": "daily 03:00",
        "zone": "Europe/Berlin",
        "enabled": True,
    }
    assert (listed["apart"]["kind"], listed["fail"]["kind"], listed["confirm"]["kind"]) == ("process", "async", "sync")
    assert listed["confirm"]["description"] == "Confirm an order, and write a mail."


def test_a_task_is_run_here_and_now_and_recorded(project: Project) -> None:
    done = [json.loads(line) for line in project.ok("run_task", "apart", "--args", '["ada"]', "--json").splitlines()]
    assert [line.get("line") for line in done[:-1]] == ["hello ada"]
    assert (done[-1]["state"], done[-1]["result"]) == ("succeeded", 0)
    failed = project.manage("run_task", "fail", "--args", "{}")
    assert failed.returncode == 1
    assert "no stock of 0" in failed.stderr + failed.stdout
    unknown = project.manage("run_task", "nope")
    assert unknown.returncode == 3
    assert "known tasks: apart, backend" in unknown.stderr
    runs = json.loads(project.ok("ostinato", "--settings=mysite.settings", "run", "ls", "--json", "--pythonpath", "."))
    assert [(run["task"], run["state"]) for run in runs] == [("fail", "failed"), ("apart", "succeeded")]


def test_the_whole_command_line_has_the_projects_app_and_settings(project: Project) -> None:
    assert "Add, list, change, trigger and remove schedules." in project.ok("ostinato", "--help")
    project.ok("ostinato", "schedule", "add", "weekly", "weekly mon 09:00", "--task", "confirm", "--args", "[1]")
    listed = {one["name"]: one for one in json.loads(project.ok("task_schedule", "--json"))}
    assert (listed["weekly"]["zone"], listed["weekly"]["state"]) == ("Europe/Berlin", "on")
    assert "to end it: manage.py ostinato worker\n" in project.ok("ostinato", "schedule", "show", "weekly")


def test_wrong_settings_are_told_by_every_command(tmp_path: Path, project: Project) -> None:
    (tmp_path / "wrong.py").write_text("from mysite.settings import *\nOSTINATO = {'shema': 'jobs'}\n")
    done = project.manage("check", DJANGO_SETTINGS_MODULE="wrong", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "ImproperlyConfigured: OSTINATO in the settings of Django has the unknown setting 'shema'" in done.stderr
    assert "did you mean 'schema'? known: " in done.stderr
    said = project.shell(WRONG).splitlines()
    assert said[0].startswith("OSTINATO: slots cannot be 'many'")
    assert said[1] == 'OSTINATO cannot be \'x.db\': give a dict, such as {"db": "postgresql://…"}'
    assert said[2].startswith("OSTINATO: SCHEDULER_ENABLED cannot be 'maybe'")


def test_settings_come_from_django_and_any_off_wins(tmp_path: Path, project: Project) -> None:
    (tmp_path / "other.py").write_text(
        "from mysite.settings import *\nOSTINATO = {'slots': 7, 'name': 'shop'}\nSCHEDULER_ENABLED = True\n"
        "ALLOWED_HOSTS = ['shop.example.org', '.example.net', '*', 'https://example.org']\n"
    )
    asked = (
        "from ostinato.config import switched_off; from ostinato.integrations.django import jobs; s = jobs.settings; "
        "print(s.db, s.slots, s.tz, s.hosts, jobs.name, switched_off(s), sep='|')"
    )
    said = project.shell(
        asked,
        DJANGO_SETTINGS_MODULE="other",
        PYTHONPATH=str(tmp_path),
        SCHEDULER_ENABLED="off",
        OSTINATO_ENABLED="0",
        OSTINATO_SLOTS="9",
    ).split("|")
    assert said[0] == f"sqlite:///{project.folder}/ostinato.db"
    assert said[1:5] == ["7", "Europe/Berlin", "('shop.example.org',)", "shop"]
    assert "OSTINATO_ENABLED is 0" in said[5]
    assert "SCHEDULER_ENABLED is off in the environment" in said[5]


def test_the_ledger_is_in_djangos_postgres_and_in_its_own_schema(
    empty_postgres_url: str, tmp_path: Path, project: Project
) -> None:
    from tests.transactions.callers import django_database

    database = {**django_database(empty_postgres_url), "OPTIONS": {"pool": False, "application_name": "shop & co"}}
    (tmp_path / "in_postgres.py").write_text(f"from mysite.settings import *\nDATABASES['default'] = {database!r}\n")
    variables = {"DJANGO_SETTINGS_MODULE": "in_postgres", "PYTHONPATH": str(tmp_path)}
    project.ok("migrate", "-v", "0", **variables)
    assert "declared; it is stored when an engine starts" in project.ok("task_schedule", **variables)
    with psycopg.connect(empty_postgres_url) as connection:
        assert connection.execute("SELECT to_regnamespace('ostinato')").fetchone() == (None,)
    run = project.ok("run_task", "count_orders", "--json", **variables).splitlines()[-1]
    assert json.loads(run)["result"] == 0
    assert project.shell(IN_POSTGRES, **variables) == "default count_orders\n[]"
