"""`ostinato doctor`: is everything as it should be? One line for each check, with what to do where it is not.

It makes nothing: a database that is not there yet is told, not created.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ostinato.cli.console import Styled, emit_json, paragraph
from ostinato.cli.doctor_channels import examine_channels
from ostinato.cli.doctor_outboxes import examine_outboxes
from ostinato.cli.doctor_telegram import examine_telegram, examine_telegram_settings
from ostinato.cli.doctor_work import examine_work
from ostinato.cli.finding import NAMED, Finding, named
from ostinato.cli.open_database import OpenDatabase, database_exists, load_app, opened
from ostinato.cli.options import NO_COMMON, Common
from ostinato.command_hints import hint
from ostinato.errors import InvalidInput, OstinatoError, StoreUnavailable
from ostinato.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ostinato.models.node import Node
    from ostinato.models.schedule import Schedule

__all__ = ["doctor"]

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
_EARLIEST_YEAR = 2025
_AHEAD = timedelta(seconds=2)


def doctor(*, send: bool = False, common: Common = NO_COMMON) -> int:
    """Check settings, database, engine, schedules and what they need, channels, outboxes and the clock.

    Exit code 1 if something fails.

    Parameters
    ----------
    send
        Send a test message to every channel.
    """
    findings = list(_examine(common, send=send))
    if common.json:
        emit_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            fix = f"\n→ {finding.fix}" if finding.fix else ""
            paragraph(Styled(f"{finding.status:6}", _STYLES[finding.status]), f"{finding.check}: {finding.text}{fix}")
    return 1 if any(finding.status == "fail" for finding in findings) else 0


def _examine(common: Common, *, send: bool) -> Iterator[Finding]:
    from ostinato.config import database_file, without_password

    try:
        app = load_app(common)
    except OstinatoError as error:
        yield Finding("settings", "fail", str(error), "correct ostinato.toml, the OSTINATO_ variables or the flags")
        return
    settings = app.settings
    loaded = f", app {name}" if (name := common.app or settings.app) else ""
    yield Finding("settings", "ok", f"database {without_password(settings.db)}, zone {settings.tz}{loaded}")
    yield _zone(settings.tz)
    yield _processes()
    yield from examine_telegram_settings(settings)
    path = database_file(settings.db)
    yield (trust := _trust(path))
    if trust.status == "fail":
        return
    try:
        if not database_exists(app):
            what = f"schema {settings.schema!r} in the database" if path is None else f"file {path}"
            fix = "run 'ostinato up' or 'ostinato db migrate' to make it, or name another with --db"
            yield Finding("database", "warn", f"there is no {what}", fix)
            return
        if path is not None:
            yield _file(path)
        with opened(common) as database:
            yield from _database(database, path, send=send)
    except OstinatoError as error:
        other = "name another with --db"
        fix = f"start the database server, or {other}" if path is None else f"repair the file, or {other}"
        says_it_itself = path is not None and isinstance(error, StoreUnavailable)  # a locked file, a full disk
        yield Finding("database", "fail", str(error), None if says_it_itself else fix)


def _zone(name: str) -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    from ostinato.timing.zones import check_zone

    try:
        check_zone(name)
    except OstinatoError as error:
        return Finding("zone", "fail", str(error).replace("\n", " "), "set tz in ostinato.toml, or OSTINATO_TZ")
    try:
        data = f"tzdata {version('tzdata')}"
    except PackageNotFoundError:
        return Finding("zone", "warn", f"{name}, from the system's data", "pip install tzdata keeps zones up to date")
    return Finding("zone", "ok", f"{name} is known ({data})")


def _trust(path: Path | None) -> Finding:
    from ostinato.trust import VARIABLE, require_trusted_database, trusted_places

    try:
        if path is not None:
            require_trusted_database(str(path))
    except InvalidInput as error:
        return Finding("trust", "fail", str(error).removesuffix(f"; {error.hint}"), error.hint)
    places = trusted_places()
    if "*" in places:
        fix = f"name the folders instead: {VARIABLE}=/srv/jobs"
        return Finding("trust", "warn", f"{VARIABLE}=* trusts the files of everybody", fix)
    also = f", and what is in {named(places)}" if places else ""
    return Finding("trust", "ok", f"only files of root and of this user that nobody else may write to{also}")


def _processes() -> Finding:
    from ostinato.wiring import has_subreaper

    if has_subreaper():
        return Finding("processes", "ok", "everything that a command started ends with it")
    text = f"{sys.platform} has no child subreaper: what a command starts in its own session outlives it"
    return Finding("processes", "warn", text, "run commands on Linux, or let them start no daemons")


def _file(path: Path) -> Finding:
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK):
        return Finding("file", "fail", f"{path} cannot be written by this user", f"let this user write {path.parent}")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Finding("file", "warn", f"{path} can be read by others (mode {mode:04o})", f"chmod 600 {path}")
    return Finding("file", "ok", f"{path} is writable, and private (mode {mode:04o})")


def _database(database: OpenDatabase, path: Path | None, *, send: bool) -> Iterator[Finding]:
    status = database.ask(database.services.upkeep.status())
    kind = _sqlite_version() if path is not None else "PostgreSQL"
    size = f"{status.size_bytes / 1_048_576:.1f} MB"
    yield Finding("database", "ok", f"version {status.version} of {status.latest}, {size}, {kind}")
    for remark in database.ask(database.services.upkeep.remarks()):
        yield Finding(remark.check, remark.status, remark.text, remark.fix)
    yield from _rows(database)
    nodes = database.ask(database.services.nodes.list())
    alive = [node for node in nodes if node.state != "lost"]
    yield _engine(alive, database.switched_off)
    yield from _services(alive)
    tasks = {*database.app.registry.tasks, *(task for node in alive for task in node.tasks)}
    yield from examine_telegram(database.app.settings.telegram, alive, tasks)
    yield from _given_up(database)
    schedules = database.ask(database.services.schedules.list())
    yield from _schedules(database, schedules)
    yield from examine_work(database, schedules, alive, tasks)
    yield from examine_channels(database, schedules, send=send)
    yield from examine_outboxes(database.app.outboxes, alive)
    yield _clock(database.now, nodes)
    yield from _asleep(database.now, schedules)


def _rows(database: OpenDatabase) -> Iterator[Finding]:
    """Rows that nobody can work with: those that were set aside, and those that nobody has met yet."""
    bad = database.ask(database.services.upkeep.find_bad())
    found = [(f"{row.table} {row.row}: {row.reason}", "a running engine quarantines it") for row in bad]
    more = ("more row breaks a rule", "more rows break a rule")
    yield from _warnings("rows", found, more, "a running engine quarantines them")
    quarantined = database.ask(database.services.upkeep.quarantined())
    fix = "see 'ostinato db quarantine --json' for what it said; forget it with 'ostinato db quarantine --clear'"
    found = [(f"{row.table} {row.row} is quarantined: {row.reason}", fix) for row in quarantined]
    yield from _warnings("rows", found, ("more is quarantined", "more are quarantined"), "ostinato db quarantine")
    if not bad and not quarantined:
        yield Finding("rows", "ok", "every row follows the rules, and none is quarantined")


def _warnings(check: str, found: Sequence[tuple[str, str]], more: tuple[str, str], fix: str) -> Iterator[Finding]:
    """A warning for each of the first ones, with its fix, and one that says how many more there are."""
    for text, its_fix in found[:NAMED]:
        yield Finding(check, "warn", text, its_fix)
    if len(found) > NAMED:
        yield Finding(check, "warn", counted(len(found) - NAMED, *more), fix)


def _sqlite_version() -> str:
    import apsw

    return f"SQLite {apsw.sqlite_lib_version()}"


def _engine(alive: Sequence[Node], off: str | None) -> Finding:
    """`off` says what keeps an engine from being started here."""
    also = "" if off is None else f"; {off}"
    if alive:
        return Finding("engine", "ok", f"{len(alive)} running: {named([node.id for node in alive])}{also}")
    start = "'ostinato worker'"
    fix = f"start one with {start}" if off is None else f"switch it on, or start {start} where it is on"
    return Finding("engine", "warn", f"no engine is running on this database{also}", fix)


def _services(alive: Sequence[Node]) -> Iterator[Finding]:
    for node in alive:
        # A service that is not up and has no error has not been looked at since it was started.
        down = [
            f"{name} ({how['error']})" for name, how in node.services.items() if not how.get("up") and how.get("error")
        ]
        if down:
            yield Finding("engine", "fail", f"on {node.id} these are down: {', '.join(down)}", "see its log")


def _given_up(database: OpenDatabase) -> Iterator[Finding]:
    """Code that nobody could stop: it occupies the name of its schedule until it ends."""
    fix = "restart that node to end it; let the task check run.cancelled, or give it isolation='process'"
    given_up = database.ask(database.services.runs.given_up())
    found = [(f"{one.name!r}: {one.sentence}, since {one.at:%Y-%m-%d %H:%M:%S} UTC", fix) for one in given_up]
    more = ("more given-up run goes on", "more given-up runs go on")
    yield from _warnings("work", found, more, "restart their nodes")


def _ending(database: OpenDatabase, schedule: Schedule) -> str:
    """What switches a broken schedule on again, as `why` names it."""
    blocked = database.ask(database.services.blocking.of_schedule(schedule))
    if blocked is None or blocked.command is None:
        return f"{hint('why', schedule.name)} says more"
    return f"fix it, then '{blocked.command}'"


def _schedules(database: OpenDatabase, schedules: Sequence[Schedule]) -> Iterator[Finding]:
    states = {name: [one for one in schedules if one.state == name] for name in ("broken", "orphaned")}
    fixes = {one.name: _ending(database, one) for one in states["broken"][:NAMED]}
    found = [(f"{one.name!r} is broken: {one.broken}", fixes.get(one.name, "")) for one in states["broken"]]
    yield from _warnings("schedules", found, ("more is broken", "more are broken"), "ostinato schedule ls")
    late = [
        (f"{one.name!r} is late: it has not succeeded in time", f"{hint('why', one.name)} says why")
        for one in schedules
        if one.late
    ]
    yield from _warnings("schedules", late, ("more is late", "more are late"), "ostinato schedule ls")
    if states["orphaned"]:
        listed = named([schedule.name for schedule in states["orphaned"]])
        fix = "declare them again, or remove them with 'ostinato schedule rm'"
        yield Finding("schedules", "warn", f"no longer declared by the code: {listed}", fix)
    if not late and not any(states.values()):
        yield Finding("schedules", "ok", f"{len(schedules)}, none broken, late or orphaned")


def _clock(now: datetime, nodes: Sequence[Node]) -> Finding:
    if now.year < _EARLIEST_YEAR:
        return Finding(
            "clock", "fail", f"it is {now:%Y-%m-%d} by this machine's clock", "set it, and run an NTP client"
        )
    ahead = max(((node.seen_at - now).total_seconds() for node in nodes), default=0.0)
    if ahead > 2:
        text = f"another node's clock is {ahead:.0f} s ahead of this one"
        return Finding("clock", "warn", text, "run an NTP client on every machine")
    return Finding("clock", "ok", f"{now:%Y-%m-%d %H:%M:%S} UTC, Python {sys.version.split()[0]}")


def _asleep(now: datetime, schedules: Sequence[Schedule]) -> Iterator[Finding]:
    """Schedules that wait beyond their next due time by the clock of now: it was set back since they were planned."""
    late = [schedule.name for schedule in schedules if _sleeps(schedule, now)]
    if late:
        text = f"it was set back: {named(late)} would wait beyond the next due time"
        yield Finding("clock", "warn", text, "start an engine, or restart it: it plans them again")


def _sleeps(schedule: Schedule, now: datetime) -> bool:
    from ostinato.clock import from_micros, to_micros
    from ostinato.models.replanning import due_by_now

    if not schedule.enabled or schedule.next_run_at is None or schedule.paused_since is not None:
        return False
    try:
        due = due_by_now(
            schedule.name, schedule.stored_timing, schedule.zone, to_micros(schedule.anchor_at), to_micros(now)
        )
    except Exception:  # the engine breaks it when it is due, and says why
        return False
    # What is due within the next moment may have been recorded ahead.
    return due is not None and now + _AHEAD < from_micros(due) < schedule.next_run_at
