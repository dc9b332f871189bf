"""An app whose process has other code that opens the database: `python intruded.py PATH WAY [LOG]`.

It acknowledges runs, lets the intruder in, and goes on whenever a line comes on stdin. Each line that it prints is a
JSON list: `acknowledged` with an id, `refused` with the reason, `health`. As `worker` it has an engine, and intruders
all the time.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

from ostinato import Ostinato, RunContext
from ostinato.config import load_settings
from ostinato.durations import parse_duration
from ostinato.errors import OstinatoError

PATH, WAY = sys.argv[1], sys.argv[2]
# Shorter than settings allow: nothing here starts commands, and tests shall not wait for a long one.
LEASE = parse_duration(os.environ.get("FAULTS_LEASE", "15s"))
HANGS = os.environ.get("FAULTS_HANGS")
"""The schedule whose runs never end here."""
app = Ostinato(settings=replace(load_settings(db=f"sqlite:///{PATH}"), lease=LEASE), name="intruded")


@app.task("noop", retry=0)
def noop() -> None:
    """What is enqueued is never executed here: it is counted."""


@app.task("back_up", retry=0)
def back_up() -> None:
    with closing(sqlite3.connect(PATH)) as database:
        database.execute(f"VACUUM INTO '{PATH}.copy'")


@app.task("work", retry=0)
async def work(run: RunContext) -> None:
    line = f"{run.schedule} {run.due_at.timestamp():.6f}\n"
    os.write(LOG, line.encode())
    if run.schedule == HANGS:
        await asyncio.Event().wait()


def select() -> None:
    with closing(sqlite3.connect(PATH, timeout=30)) as database:
        database.execute("SELECT count(*) FROM runs").fetchall()


def read_file() -> None:
    with open(PATH, "rb") as file:
        file.read()
    with open(f"{PATH}-shm", "rb") as file:
        file.read()


def write() -> None:
    with closing(sqlite3.connect(PATH, timeout=30)) as database:
        database.execute("CREATE TABLE IF NOT EXISTS theirs (a)")
        for number in range(50):
            with database:
                database.execute("INSERT INTO theirs VALUES (?)", (number,))
            acknowledge(1)


def sqlalchemy() -> None:
    from sqlalchemy import create_engine, text

    engine = create_engine(f"sqlite:///{PATH}")
    with engine.connect() as connection:
        connection.execute(text("SELECT count(*) FROM runs")).all()
    engine.dispose()


def django() -> None:
    from django.conf import settings
    from django.db import connection

    settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": PATH}})
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM runs")
        cursor.fetchall()
    connection.close()


def fork() -> None:
    child = os.fork()
    if child == 0:
        sys.exit()  # as a program ends: whatever is left is collected and closed
    os.waitpid(child, 0)


def second_app() -> None:
    """As `ostinato worker` does: the command opens the database, and then the engine does."""
    app.start()
    Ostinato(f"sqlite:///{PATH}", name="second").schedules.list()


def recipe() -> None:
    app.start()
    back_up.enqueue().wait(timeout=60)


WAYS: dict[str, Callable[[], object]] = {
    "select": select,
    "read_file": read_file,
    "write": write,
    "sqlalchemy": sqlalchemy,
    "django": django,
    "fork": fork,
    "recipe": recipe,
    "second_app": second_app,
    "engine": app.start,
    "nobody": lambda: None,
}


def tell(*what: Any) -> None:
    print(json.dumps(what), flush=True)


def acknowledge(count: int) -> None:
    for _ in range(count):
        try:
            tell("acknowledged", noop.using(delay="1d").enqueue().id)
        except OstinatoError as error:
            tell("refused", str(error))


def worker() -> None:
    """Every kind of intruder beside the engine, again and again, until it is killed."""

    def intrude() -> None:
        while True:
            select()
            read_file()

    app.start()
    threading.Thread(target=intrude, daemon=True).start()
    tell("ready")
    sys.stdin.read()


def main() -> None:
    acknowledge(20)
    WAYS[WAY]()
    tell("intruded")
    for line in sys.stdin:
        if line == "health\n":
            tell("health", app.health()["ok"], app.health().get("database"))
        else:
            acknowledge(20)
            tell("done")


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    if WAY == "worker":
        LOG = os.open(sys.argv[3], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        worker()
    else:
        main()
