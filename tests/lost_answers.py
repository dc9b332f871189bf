"""Commits of PostgreSQL that happen and whose answer never arrives, as when the line breaks at that moment."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from ostinato.errors import StoreUnavailable
from ostinato.stores.postgres.commits import inserted
from ostinato.stores.postgres.query import Connection
from ostinato.stores.postgres.writer import Writer, _Answers, _Job, _Uncertain

__all__ = ["lose_answer"]


def lose_answer(
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[], object] = lambda: None,
    *,
    when: Callable[[], bool] = lambda: True,
    stays_away: bool = False,
) -> None:
    """Let the next transaction commit, and its answer be lost with its connection; others do something before it is
    sent again, if the server does not stay away."""
    send = Writer._send
    done = False

    async def commit_and_break(self: Writer, connection: Connection, group: list[_Job]) -> list[_Answers]:
        nonlocal done
        answers = await send(self, connection, group)
        if done or not when():
            return answers
        done = True
        meanwhile()
        inserts = inserted.get()
        for insert in inserts:
            insert._cursor = _Lost()  # type: ignore[assignment]
        if stays_away:
            monkeypatch.setattr(Writer, "_connected", _away)
        number = self._number if any(job.once for job in group) else None
        raise _Uncertain(psycopg.OperationalError("the line went dead"), number, answers, inserts)

    monkeypatch.setattr(Writer, "_send", commit_and_break)


class _Lost:
    async def fetchall(self) -> None:
        raise psycopg.OperationalError("the answer never arrived")


async def _away(*_: object) -> Connection:
    raise StoreUnavailable("the server stays away")
