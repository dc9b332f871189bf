"""Data that looks like a month of a small shop, the same each time but for the clock; and a list of very many."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import msgspec

from ostinato import Agent, Function, Http, Keep, Ostinato, ScheduleSpec, Shell, parse_timing
from ostinato.clock import to_micros
from ostinato.plurals import counted

__all__ = ["ZONE", "fill_shop", "fill_with_busy", "fill_with_many"]

ZONE = "Europe/Berlin"
_NOT_RUN = {
    "skipped": "the run before it was still running, and the overlap policy is skip",
    "missed": "no node was there when it was due, and it was too old to be made up for",
}
_ERROR = "exit code 1: the supplier's server refused the connection"


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A schedule, and what its history looks like."""

    name: str
    timing: str
    work: Any
    project: str | None = None
    policy: dict[str, Any] = field(default_factory=dict)
    days: int = 30
    seconds: float = 10
    failing: float = 0.0
    totals: tuple[str, ...] = ()


SEEDS = [
    Seed(name="backup-database", timing="daily 03:00", work=Shell("restic backup /srv/shop"), project="shop",
         policy={"timeout": "1h"}, days=170, seconds=260, failing=0.04, totals=("files", "megabytes")),
    Seed(name="send-invoices", timing="weekdays 09:30", work=Function("invoices.send"), project="shop",
         days=120, seconds=42, failing=0.08, totals=("sent", "errors")),
    Seed(name="sync-stock", timing="every 20m", work=Function("stock.sync"), project="shop",
         days=20, seconds=9, failing=0.02, totals=("copied", "skipped")),
    Seed(name="reindex-search", timing="every 1h", work=Function("search.reindex"), project="shop",
         days=150, seconds=410, failing=0.004, totals=("indexed", "skipped")),
    Seed(name="warm-cache", timing="every 30m", work=Function("cache.warm"), days=7, seconds=1.4, totals=("pages",)),
    Seed(name="summarise-issues", timing="weekly mon,thu 08:00", work=Agent("Summarise what is new in the tracker"),
         project="website", policy={"lane": "subagent"}, days=120, seconds=190, failing=0.1,
         totals=("cost_usd", "turns")),
    Seed(name="check-certificates", timing="daily 06:15", work=Http("GET", "https://shop.example/health"),
         project="website", seconds=0.8),
    Seed(name="import-prices", timing="*/15 * * * *", work=Shell("./import-prices --from sftp"), project="shop",
         policy={"retry": 0}, days=12, seconds=31, failing=0.04, totals=("copied", "errors")),
    Seed(name="rotate-logs", timing="weekly sun 02:30", work=Shell(["logrotate", "/etc/logrotate.conf"]),
         days=170, seconds=3),
    Seed(name="close-month", timing="monthly last 18:00", work=Function("books.close"), project="shop",
         policy={"break_after": 1}, days=180, seconds=95),
    Seed(name="newsletter", timing="at 2027-12-24T18:00", work=Function("mail.newsletter"),
         policy={"delete_after_run": True}),
    Seed(name="prune-carts", timing="every 6h", work=Function("carts.prune"), project="shop",
         days=40, seconds=14, totals=("removed",)),
]  # fmt: skip


def fill_shop(folder: Path, now: datetime) -> None:
    """Schedules with their history, projects, lanes, calendars and a paused schedule; nothing is running."""
    app = Ostinato(f"sqlite:///{folder / 'ostinato.db'}", tz=ZONE)
    for project in ("shop", "website"):
        (folder / project).mkdir()
        app.projects.add(project, str(folder / project))
    for seed in SEEDS:
        policy = {"keep": Keep(age=timedelta(days=365), count=None), **seed.policy}
        app.schedules.add(seed.name, seed.timing, seed.work, tz=ZONE, project=seed.project, **policy)
    feasts = ["01-01", "12-24", "12-25", "12-26", "12-31"]
    trips = [str((now + timedelta(days=days)).date()) for days in (-20, 44, 45, 190)]
    app.calendars.set("office", [*feasts, *trips], note="nobody is there to answer")
    app.schedules.edit("send-invoices", timing="weekdays 09:30 except calendar(office)")
    app.calendars.set("freeze", [str((now - timedelta(days=3)).date())], note="nothing is deployed")
    app.schedules.disable("prune-carts", note="until the new checkout is live")
    app.lanes.set("mail", 4, rate="60/m")
    app.lanes.pause("mail", note="the provider is down")
    app.lanes.set("subagent", 3)
    app.stop()
    database = apsw.Connection(str(folder / "ostinato.db"))
    with database:
        dice = random.Random(8321)
        history = [(due, seed) for seed in SEEDS for due in _due_times(seed, now)]
        for due, seed in sorted(history, key=lambda one: (one[0], one[1].name)):
            _write_run(database, seed, due, dice)
        _break(database, "import-prices", now)
    database.close()


def fill_with_many(folder: Path, count: int) -> None:
    """A long list: `count` schedules, none of them due soon; every third has the runs of the last ten days."""
    app = Ostinato(f"sqlite:///{folder / 'ostinato.db'}", tz=ZONE)
    app.schedules.add_many(
        ScheduleSpec(f"customer-{number:05}", f"daily {number % 24:02}:{number % 60:02}", Shell("true"))
        for number in range(count)
    )
    app.stop()
    database = apsw.Connection(str(folder / "ostinato.db"))
    with database:
        database.execute(_RUNS_OF_MANY, {"now": to_micros(datetime.now(UTC))})
    database.close()


def fill_with_busy(folder: Path, days: float) -> None:
    """Three schedules that ran every ten seconds all these days, and are off since; one in 997 of their runs failed."""
    app = Ostinato(f"sqlite:///{folder / 'ostinato.db'}", tz=ZONE)
    for name in ("backup", "poll", "sync"):
        app.schedules.add(name, "every 10s", Shell("true"), enabled=name == "backup")
    app.schedules.edit("backup", timing="daily 03:00")
    app.stop()
    database = apsw.Connection(str(folder / "ostinato.db"))
    with database:
        database.execute(_BUSY_RUNS, {"now": to_micros(datetime.now(UTC)), "count": int(days * 8640)})
    database.close()


_BUSY_RUNS = """
WITH RECURSIVE past (number) AS (VALUES (:count) UNION ALL SELECT number - 1 FROM past WHERE number > 1)
INSERT INTO runs (schedule_id, kind, task, work, policy, project, state, trigger, due_at, ready_at, started_at,
                  finished_at, attempt, lane, node)
SELECT s.id, s.kind, s.task, s.work, s.policy, s.project, iif((s.id + number) % 997, 'succeeded', 'failed'), 'schedule',
       :now - number * 10000000, :now - number * 10000000, :now - number * 10000000,
       :now - number * 10000000 + 900000, 1, 'cron', 'shop-1'
FROM past, schedules s
"""

# 60 for each, four hours apart, of 1 to 9 s; every eleventh has failed.
_RUNS_OF_MANY = """
WITH RECURSIVE past (number) AS (VALUES (60) UNION ALL SELECT number - 1 FROM past WHERE number > 1)
INSERT INTO runs (schedule_id, kind, task, work, policy, project, state, trigger, due_at, ready_at, started_at,
                  finished_at, attempt, lane, node)
SELECT s.id, s.kind, s.task, s.work, s.policy, s.project, iif((s.id + number) % 11, 'succeeded', 'failed'), 'schedule',
       :now - number * 14400000000, :now - number * 14400000000, :now - number * 14400000000,
       :now - number * 14400000000 + (1 + (s.id * number) % 9) * 1000000, 1, 'cron', 'shop-1'
FROM past, schedules s WHERE s.id % 3 = 0
"""


def _write_run(database: apsw.Connection, seed: Seed, due: datetime, dice: random.Random) -> None:
    state = _state(seed, dice)
    started = due + timedelta(milliseconds=dice.randint(2, 40))
    finished = started + timedelta(seconds=seed.seconds * dice.uniform(0.7, 1.5))
    ran = state in ("succeeded", "failed")
    totals = _totals(seed, state, dice) if ran else {}
    errors = int(totals.get("errors", 0)) if state == "succeeded" else 0
    database.execute(
        "INSERT INTO runs (schedule_id, kind, task, work, policy, project, state, cause, reason, trigger, due_at,"
        " ready_at, started_at, finished_at, attempt, lane, node, totals, error)"
        " SELECT id, kind, task, work, policy, project, :state, :cause, :reason, 'schedule', :due, :due, :started,"
        " :finished, :attempt, :lane, :node, :totals, :error FROM schedules WHERE name = :name",
        {
            "name": seed.name,
            "state": state,
            "cause": "errors" if errors else None,
            "reason": counted(errors, "error") if errors else _ERROR if state == "failed" else _NOT_RUN.get(state),
            "due": to_micros(due),
            "started": to_micros(started) if ran else None,
            "finished": to_micros(finished if ran else started),
            "attempt": int(ran),
            "lane": seed.policy.get("lane", "cron"),
            "node": "shop-1" if ran else None,
            "totals": msgspec.json.encode(totals).decode() if totals else None,
            "error": _ERROR if state == "failed" else None,
        },
    )


def _totals(seed: Seed, state: str, dice: random.Random) -> dict[str, float]:
    totals: dict[str, float] = {name: dice.randint(1, 900) for name in seed.totals}
    if "errors" in totals:
        totals["errors"] = dice.randint(1, 5) if state == "failed" or dice.random() < 0.05 else 0
    if "cost_usd" in totals:
        totals["cost_usd"] = round(dice.uniform(0.1, 0.9), 2)
    return totals


def _due_times(seed: Seed, now: datetime) -> Iterator[datetime]:
    timing = parse_timing(seed.timing, tz=ZONE)
    due = timing.next_after(now - timedelta(days=seed.days))
    while due is not None and due < now - timedelta(seconds=2 * seed.seconds + 5):
        yield due.astimezone(UTC)
        due = timing.next_after(due)


def _state(seed: Seed, dice: random.Random) -> str:
    drawn = dice.random()
    if drawn < seed.failing:
        return "failed"
    if drawn < seed.failing + 0.02:
        return dice.choice(["skipped", "missed"])
    return "succeeded"


def _break(database: apsw.Connection, name: str, now: datetime) -> None:
    """As if its last three runs had failed."""
    database.execute(
        "UPDATE runs SET state = 'failed', cause = 'exit_status', reason = ?1, error = ?1, started_at = due_at,"
        " finished_at = due_at + 1400000, attempt = 1 WHERE id IN"
        " (SELECT r.id FROM runs r JOIN schedules s ON s.id = r.schedule_id WHERE s.name = ?2"
        "  ORDER BY r.due_at DESC LIMIT 3)",
        (_ERROR, name),
    )
    database.execute(
        "UPDATE schedules SET enabled = 0, next_at = NULL, failures = 3, broken = ?1, updated_at = ?2 WHERE name = ?3",
        (f"3 scheduled runs failed in a row, the last one with: {_ERROR}", to_micros(now), name),
    )
