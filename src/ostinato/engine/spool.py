"""The spool: finishes that a stopping node could not write go into a file, and the next start writes them.

node.py keeps them here when the database stays away beyond the grace, and writes them before it rescues. A finish is
written only while its run is still under way on the node that spooled it, and its token holds: a node's name is given
once, so neither a rescued run nor another database at the same address can take it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from ostinato.announcer import Announcer
from ostinato.clock import Clock
from ostinato.config import Settings, database_file, is_in_memory, without_password
from ostinato.errors import StoreUnavailable
from ostinato.logs import get_logger, one_line
from ostinato.models.finishes import unstorable
from ostinato.models.ids import NodeId, RunId
from ostinato.models.output import OutputPart
from ostinato.models.project import Conversation
from ostinato.models.run import Finish, SessionUsage
from ostinato.models.states import Cause, RunState
from ostinato.plurals import counted
from ostinato.stores.base import RunStore
from ostinato.trust import owners

__all__ = ["Spool", "spool_prefix"]

log = get_logger("ostinato.engine")

_BATCH = 500
_UNREADABLE = ".unreadable"


class _NotOurs(Exception):
    """A file of another user."""


class _Spooled(msgspec.Struct):
    """What is in a file."""

    node: str
    finishes: list[dict[str, Any]]


def spool_prefix(settings: Settings) -> Path | None:
    """What the names of spool files of this database begin with; None for one in memory, which nothing outlives."""
    if is_in_memory(settings.db):
        return None
    file = database_file(settings.db)
    if file is not None:
        # Beside the file, and not beside a link to it: whoever opens it by another name finds them.
        return Path(f"{os.path.realpath(file)}.spool-")
    named = f"{without_password(settings.db)} {settings.schema}"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "ostinato" / f"{hashlib.blake2b(named.encode(), digest_size=8).hexdigest()}.spool-"


class Spool:
    """Keeps the finishes of a node beside a database that is away."""

    def __init__(self, runs: RunStore, prefix: Path | None, announcer: Announcer, clock: Clock) -> None:
        self._clock = clock
        self._announcer = announcer
        self._runs = runs
        self._prefix = prefix

    def keep(self, node: NodeId, finishes: Sequence[Finish]) -> Path | None:
        """Write these to a file that survives the machine; None if there is no place for it."""
        if self._prefix is None:
            return None
        self._prefix.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._prefix.with_name(f"{self._prefix.name}{node}.json")
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        rows = [asdict(replace(finish, recorded=None)) for finish in finishes]
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(_Spooled(node, rows)))
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
        _sync_folder(path.parent)
        return path

    async def write(self) -> int:
        """Write what nodes of this database left behind; answers how many finishes. A bad file is put aside."""
        if self._prefix is None or not self._prefix.parent.is_dir():
            return 0
        count = 0
        for path in sorted(self._prefix.parent.glob(f"{_escaped(self._prefix.name)}*.json")):
            try:
                spooled, finishes = _read(path)
            except FileNotFoundError:
                continue  # another process was faster
            except _NotOurs:
                log.warning("spooled finishes in %s belong to another user: a node of that user must write them", path)
                continue
            except Exception as error:  # whatever is wrong with it: it must not keep a node from starting
                _put_aside(path, error)
                continue
            lost = await self._write(spooled, finishes)
            path.unlink(missing_ok=True)
            written = len(finishes) - len(lost)
            count += written
            log.warning("wrote %s that node %s had spooled", counted(written, "finish", "finishes"), spooled)
            if lost:
                listed, dropped = ", ".join(map(str, lost)), counted(len(lost), "spooled finish", "spooled finishes")
                log.warning("dropped %s, already written or rescued: run %s", dropped, listed)
        return count

    async def _write(self, node: str, finishes: Sequence[Finish]) -> list[RunId]:
        """Write what still holds, and answer what does not."""
        held: list[Finish] = []
        lost: list[Finish] = []
        for finish in finishes:
            run = await self._runs.get_run(finish.id)
            is_held = run is not None and run.state is RunState.RUNNING and run.node == node
            (held if is_held else lost).append(finish)
        ids = [finish.id for finish in lost]
        for at in range(0, len(held), _BATCH):
            ids += await self._finish(held[at : at + _BATCH])
        return ids

    async def _finish(self, batch: Sequence[Finish]) -> Sequence[RunId]:
        try:
            return await self._put(batch)
        except StoreUnavailable:
            raise  # the database is away: this start fails, and the file is left for the next one
        except Exception as error:
            if len(batch) > 1:
                return [id for finish in batch for id in await self._finish([finish])]
            log.exception("the outcome of run %s could not be stored", batch[0].id)
            return await self._put([unstorable(batch[0], one_line(error))])

    async def _put(self, batch: Sequence[Finish]) -> Sequence[RunId]:
        for finish in batch:
            finish.tells = True  # nobody knows here yet who wants to be told of what
        finished = await self._runs.finish_runs(batch, None, self._clock.now())
        self._announcer.ended(finished.as_written(batch), finished)
        return finished.lost


def _read(path: Path) -> tuple[str, list[Finish]]:
    """The node that wrote a file, and what it holds. What another user could have written is not believed."""
    if path.lstat().st_uid not in owners():
        raise _NotOurs
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except PermissionError:
        raise _NotOurs from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in owners() or status.st_mode & 0o022:
            raise PermissionError("it is not a file that only this user can write")
        spooled = msgspec.json.decode(file.read(), type=_Spooled)
    return spooled.node, [_finish(row) for row in spooled.finishes]


def _finish(row: dict[str, Any]) -> Finish:
    conversation, usage = row["conversation"], row.get("usage")
    return Finish(
        **{
            **row,
            "state": RunState(row["state"]),
            "cause": None if row["cause"] is None else Cause(row["cause"]),
            "output": [OutputPart(**part) for part in row["output"]],
            "conversation": None if conversation is None else Conversation(**conversation),
            "usage": None if usage is None else SessionUsage(*usage),
            "notify": tuple(row.get("notify", ())),
        }
    )


def _put_aside(path: Path, error: Exception) -> None:
    log.error("spooled finishes in %s cannot be read and are set aside: %s", path, one_line(error))
    try:
        path.rename(path.with_name(path.name + _UNREADABLE))
    except OSError as refused:
        log.error("%s stays where it is: %s", path, one_line(refused))


def _escaped(name: str) -> str:
    """A name as a pattern that only fits itself."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
