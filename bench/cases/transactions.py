"""How soon a run starts after the commit of the transaction that enqueued it, against a plain enqueue."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.environments import OURS
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import Program, ask

__all__ = ["transactions"]

MUST_MS = 50.0
NOTES = (
    "Two processes: a node, and a caller that begins a transaction, inserts a row of its own, enqueues and commits; "
    "then the next, when the run has started. The time is from the return of the commit (or of the enqueue) to "
    "time.time() as the first thing inside the async function.",
    "Plain: `task.enqueue()`. psycopg: `task.using(connection=…)` on the database of the ledger. Outbox: a SQLAlchemy "
    "session on a SQLite file, with the outbox drained by an engine in the process of the caller (told of the commit), "
    "and by the node alone (which looks every second).",
)
_WAYS = {"plain": "plain enqueue", "psycopg": "same PostgreSQL", "outbox": "outbox", "far outbox": "outbox, other node"}


def transactions(place: Place, options: Options) -> Case:
    """The ways, in turn."""
    count = options.n // 20

    def run(way: str) -> Callable[[], Figures]:
        def measured() -> Figures:
            with place.fresh_database("postgres") as db:
                some = count // 25 if way == "far outbox" else count
                asked = {"db": db, "way": way, "count": some, "folder": str(place.folder)}
                with Program(OURS, "transactions_ostinato", {**asked, "role": "node"}, place.log) as node:
                    node.answer(60)
                    return ask(OURS, "transactions_ostinato", {**asked, "role": "caller"}, place.log)

        return measured

    contenders = {way: run(way) for way in _WAYS}
    return Case("transactions", f"{count} transactions, one after the other, on PostgreSQL", contenders, _rows, NOTES)


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    plain = medians["plain"]
    found = []
    for way, name in _WAYS.items():
        figures = medians[way]
        shown = f"p50 {figures['p50_ms']:.1f}, p99 {figures['p99_ms']:.1f} ms"
        if way in ("plain", "far outbox"):
            found.append(Row(f"commit to start, {name}", "", shown))
            continue
        ratio = f"{figures['p50_ms'] / plain['p50_ms']:.2f}× plain"
        passed = figures["p50_ms"] <= MUST_MS
        found.append(Row(f"commit to start, {name}", shown, "", ratio, f"p50 ≤ {MUST_MS:g} ms", passed))
    return found
