"""Django's tasks in a project of its own: a worker process executes what another process enqueues, on PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

SETTINGS = """
import json, os
DATABASES = {"default": json.loads(os.environ["DATABASE"])}
SECRET_KEY = "a key of tests"
USE_TZ = True
INSTALLED_APPS = ["ostinato.integrations.django", "django_tasks", "desk"]
TASKS = {
    "default": {
        "BACKEND": "ostinato.integrations.django.OstinatoBackend",
        "QUEUES": ["default", "letters"],
        "OPTIONS": {"transaction": "default"},
    }
}
"""
MANAGE = """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
TASKS = """
import os
from django_tasks import task

@task
def stamp(text):
    return [text, os.getpid()]
"""
LETTERS = """
import os
from django_tasks import task

@task(queue_name="letters", takes_context=True)
async def post(context, to):
    return [to, context.attempt, os.getpid()]
"""
CLIENT = """
import json, os, time
import django
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()
from django.core.management import call_command
from django.db import transaction
from desk.letters import post
from desk.tasks import stamp

call_command("check")
with transaction.atomic():
    results = [stamp.enqueue("seen"), post.using(priority=5).enqueue(to="ada")]
try:
    with transaction.atomic():
        stamp.enqueue("never")
        raise KeyError
except KeyError:
    pass
deadline = time.monotonic() + 60
while not all(result.is_finished for result in results) and time.monotonic() < deadline:
    time.sleep(0.05)
    for result in results:
        result.refresh()
from ostinato.integrations.django import jobs
print(json.dumps({
    "statuses": [result.status for result in results],
    "returned": [result.return_value for result in results if result.status == "SUCCESSFUL"],
    "workers": [result.worker_ids for result in results],
    "errors": [error.traceback for result in results for error in result.errors],
    "rows": sorted((run.task, run.lane, run.priority, run.state) for run in jobs.runs.list()),
    "nodes": [node.id for node in jobs.nodes.list()],
}))
"""


def database(url: str) -> str:
    parts = urlsplit(url)
    return json.dumps(
        {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.path.lstrip("/"),
            "USER": parts.username or "",
            "PASSWORD": parts.password or "",
            "HOST": parts.hostname or parse_qs(parts.query).get("host", [""])[0],
            "PORT": str(parts.port or ""),
        }
    )


@pytest.mark.timeout(180)
def test_a_worker_process_executes_what_others_enqueue_also_tasks_that_it_has_not_imported(
    tmp_path: Path, postgres_url: str
) -> None:
    (tmp_path / "desk").mkdir()
    files = {"settings": SETTINGS, "manage": MANAGE, "client": CLIENT}
    files |= {"desk/__init__": "", "desk/tasks": TASKS, "desk/letters": LETTERS}
    for name, code in files.items():
        (tmp_path / f"{name}.py").write_text(code)
    environment = {**os.environ, "DATABASE": database(postgres_url), "PYTHONPATH": str(tmp_path)}
    with (tmp_path / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "manage.py", "ostinato", "worker"],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        client = subprocess.run(
            [sys.executable, "client.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        told = (tmp_path / "worker.log").read_text(errors="replace")
        assert client.returncode == 0, client.stderr + told
        said = json.loads(client.stdout.splitlines()[-1])
        assert said["statuses"] == ["SUCCESSFUL", "SUCCESSFUL"], f"{said}\n{told}"
        assert said["returned"] == [["seen", worker.pid], ["ada", 1, worker.pid]]
        assert said["workers"] == [said["nodes"]] * 2
        assert said["rows"] == [
            ["desk.letters.post", "letters", 5, "succeeded"],
            ["desk.tasks.stamp", "main", 0, "succeeded"],
        ]
        worker.terminate()
        assert worker.wait(60) == 0, told
    finally:
        if worker.poll() is None:
            worker.kill()
            worker.wait()
