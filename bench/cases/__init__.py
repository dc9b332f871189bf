"""The cases of the bench, by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from bench.cases.flood import flood
from bench.cases.http import http
from bench.cases.idle import idle
from bench.cases.interrupt import interrupt
from bench.cases.lateness import lateness
from bench.cases.rest import rest
from bench.cases.sessions import sessions
from bench.cases.shell import shell
from bench.cases.telling import telling
from bench.cases.throughput import postgres_async, sqlite_async, sqlite_sync
from bench.cases.transactions import transactions
from bench.measure import Case, Options, Place

__all__ = ["CASES", "NEEDS_SERVER"]

CASES: dict[str, Callable[[Place, Options], Case]] = {
    "sqlite-async": sqlite_async,
    "sqlite-sync": sqlite_sync,
    "postgres-async": postgres_async,
    "lateness": lateness,
    "idle": idle,
    "sessions": sessions,
    "interrupt": interrupt,
    "shell": shell,
    "http": http,
    "rest": rest,
    "flood": flood,
    "telling": telling,
    "transactions": transactions,
}
NEEDS_SERVER = {
    "postgres-async",
    "lateness",
    "idle",
    "sessions",
    "interrupt",
    "rest",
    "flood",
    "telling",
    "transactions",
}
