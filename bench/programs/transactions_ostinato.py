"""A node that notes when runs start, and a caller that commits transactions and waits for each start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from link import arguments, quantile, tell, wait_for_end, wait_until

from ostinato import Ostinato

WARM_UP = 20


def make_app(asked: dict[str, Any]) -> tuple[Ostinato, Any]:
    """The same code in both processes: the app, and its task."""
    app = Ostinato(asked["db"], tz="UTC", name=asked["role"])
    folder = Path(asked["folder"])

    @app.task("note")
    async def note(number: int) -> None:
        started = time.time()
        with (folder / "starts.txt").open("a") as starts:
            starts.write(f"{number} {started!r}\n")

    return app, note


@contextmanager
def committer(app: Ostinato, note: Any, asked: dict[str, Any]) -> Iterator[Callable[[int], None]]:
    """What enqueues one call and returns after the commit."""
    if asked["way"] == "plain":
        yield note.enqueue
    elif asked["way"] == "psycopg":
        with psycopg.connect(asked["db"]) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS orders (id bigint)")
            connection.commit()

            def commit(number: int) -> None:
                connection.execute("INSERT INTO orders VALUES (%s)", (number,))
                note.using(connection=connection).enqueue(number)
                connection.commit()

            yield commit
    else:
        from sqlalchemy import create_engine
        from sqlalchemy.orm import Session

        engine = create_engine(outbox_url(asked))
        if asked["way"] == "outbox":
            app.add_outbox(engine)
            app.start()

        def commit_session(number: int) -> None:
            with Session(engine) as session:
                note.using(connection=session).enqueue(number)
                session.commit()

        yield commit_session


def outbox_url(asked: dict[str, Any]) -> str:
    """The other database."""
    return f"sqlite:///{asked['folder']}/shop-{asked['db'].rpartition('/')[2].partition('?')[0]}.db"


def started_at(starts: Path, number: int) -> float:
    """When the call of this number started; returns when it has."""
    found: list[float] = []

    def is_there() -> bool:
        if starts.exists():
            found.extend(float(at) for n, at in map(str.split, starts.read_text().splitlines()) if int(n) == number)
        return bool(found)

    wait_until(is_there)
    starts.unlink()
    return found[0]


def main() -> None:
    """Be the node, or be the caller."""
    asked = arguments()
    app, note = make_app(asked)
    if asked["way"].endswith("outbox"):
        app.outbox(outbox_url(asked)).create()
    if asked["role"] == "node":
        if asked["way"] == "far outbox":
            app.add_outbox(outbox_url(asked))
        app.start()
        tell(ready=True)
        wait_for_end()
        app.stop()
        return
    late = []
    with committer(app, note, asked) as commit:
        warm_up = WARM_UP if asked["count"] > WARM_UP else 2
        for number in range(warm_up + asked["count"]):
            commit(number)
            committed = time.time()
            at = started_at(Path(asked["folder"]) / "starts.txt", number)
            if number >= warm_up:
                late.append(max(0.0, at - committed) * 1_000)
    app.stop()
    late.sort()
    tell(p50_ms=quantile(late, 0.5), p99_ms=quantile(late, 0.99), max_ms=late[-1])


if __name__ == "__main__":
    main()
