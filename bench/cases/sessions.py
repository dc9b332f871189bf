"""Sessions: what claiming costs when ten thousand of them have messages queued, and messages end to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.environments import OURS
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import Program, ask

__all__ = ["sessions"]

MUST_COST = 2.0
SESSIONS = 10_000
QUEUED = 2 * SESSIONS
"""Messages in each database: two for each session, or all of them for the one."""
ROOM, CHUNK, SINGLES = 100, 300, 20
"""Runs in a transaction, and in a chunk: of batches, and one by one. All chunks leave every session with a queue."""
SENDERS = 100
LANE = 100
WARM_UP = 500
KINDS = ("sqlite", "postgres")
NOTES = (
    "Claiming: one process on the store's methods, nothing executed; each transaction finishes a batch and claims the "
    f"next, as the engine does, and every end gives the next turn of its session. {QUEUED:,} messages are queued in "
    f"each of two databases: two in each of {SESSIONS:,} sessions that go one at a time, or all in one session, of "
    "which as many may go at once as a batch holds. They take turns in chunks, and the median chunk counts.",
    f"Messages: {SENDERS} senders at once in one process, each to its own session and each waiting for its answer; a "
    "worker in another process. Against the same with plain enqueue, one run for each call. The clock runs from the "
    "first until all are recorded; no debounce, lane main=100, slots 256.",
)


def sessions(place: Place, options: Options) -> Case:
    """Claims and messages on each database."""
    contenders: dict[str, Callable[[], Figures]] = {}
    for kind in KINDS:
        contenders[f"{kind} claims"] = _claims(place, kind)
        contenders[f"{kind} messages"] = _messages(place, kind, options.n // 4, plain=False)
        contenders[f"{kind} enqueue"] = _messages(place, kind, options.n // 4, plain=True)
    return Case("sessions", f"{SESSIONS:,} sessions with queued messages", contenders, _rows, NOTES)


def _claims(place: Place, kind: str) -> Callable[[], Figures]:
    def measured() -> Figures:
        with place.fresh_database(kind) as one, place.fresh_database(kind) as many:
            asked = {"role": "claims", "dbs": [one, many], "sessions": SESSIONS, "queued": QUEUED}
            sizes = {"room": ROOM, "chunk": CHUNK, "singles": SINGLES}
            return ask(OURS, "sessions_ostinato", {**asked, **sizes}, place.log)

    return measured


def _messages(place: Place, kind: str, n: int, *, plain: bool) -> Callable[[], Figures]:
    def measured() -> Figures:
        with place.fresh_database(kind) as db:
            n_each = n - n % SENDERS
            asked = {"db": db, "lane": LANE, "n": n_each, "warm_up": WARM_UP, "senders": SENDERS, "plain": plain}
            with Program(OURS, "sessions_ostinato", {**asked, "role": "worker"}, place.log) as worker:
                worker.answer(60)
                figures = ask(OURS, "sessions_ostinato", {**asked, "role": "producer"}, place.log)
        if figures["recorded"] != n_each:
            raise AssertionError(f"{figures['recorded']} of {n_each} messages are recorded as finished")
        return figures

    return measured


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    found = []
    for kind in KINDS:
        claims = medians[f"{kind} claims"]
        for name, how in (("batch", f"{ROOM} at a time"), ("single", "one at a time")):
            cost = claims[f"{name}_cost"]
            found.append(
                Row(
                    f"{kind}: claim and finish {how}, {SESSIONS:,} sessions",
                    f"{claims[f'{name}_many_us']:,.0f} µs a run",
                    f"one session {claims[f'{name}_one_us']:,.0f} µs",
                    f"{cost:.2f}×",
                    f"≤ {MUST_COST:g}×",
                    cost <= MUST_COST,
                )
            )
        messages, enqueue = medians[f"{kind} messages"], medians[f"{kind} enqueue"]
        found.append(
            Row(
                f"{kind}: messages per second, {SENDERS} sessions",
                f"{messages['per_second']:,.0f}",
                f"plain enqueue {enqueue['per_second']:,.0f}",
                f"{messages['per_second'] / enqueue['per_second']:.2f}×",
            )
        )
    return found
