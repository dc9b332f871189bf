"""The side channel of shell and agent work: what a script says of itself through `$OSTINATO_REPORT`.

It is a named pipe that takes JSON lines from the work and from whatever it starts: `{"totals": {"copied": 5}}` says
what a total is, `{"count": {"copied": 1}}` adds to it, `{"progress": {"done": 3, "total": 10, "text": "c.txt"}}` says
how far it is (`"3/10"` and `3` do, too). `ostinato report` writes such lines. A line that is not right in all its parts
is told in the run's output and does no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from ostinato.errors import InvalidInput
from ostinato.execution.context import RunContext, checked_total, finite
from ostinato.execution.output import readable

__all__ = ["ReportChannel"]

_CHUNK = 16_384
_MOST_READS = 1_000
_LONGEST_LINE = 100_000
_MOST_TOTALS = 100
_LONGEST_NAME = 200
_SHOWN = 200
"""How many letters of a line that cannot be read are shown, and of why."""
_FOLDER = re.compile(r"ostinato-(\d+)-.*")
_IN_MEMORY = "/dev/shm"
_AMOUNTS = re.compile(r"(\d+(?:\.\d+)?)(?:/(\d+(?:\.\d+)?))?")


class _Places:
    """Named pipes in a folder that is there as long as one of them is. Several engines of one process share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.folder: str | None = None
        self._taken = self._made = 0
        self._made_before = False

    def take(self) -> str:
        """The path of a new pipe."""
        with self._lock:
            self._made += 1
            if self.folder is not None:
                with contextlib.suppress(FileNotFoundError):  # somebody tidied up
                    return self._make(self.folder)
            # Where nothing is written to a disk, if there is such a place: a pipe has no use for one.
            place = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
            if not self._made_before:
                self._made_before = True
                _tidy(place or tempfile.gettempdir())
            self.folder, self._taken = tempfile.mkdtemp(prefix=f"ostinato-{os.getpid()}-", dir=place), 0
            # Others may pass through, not look: each pipe belongs to the user of its work.
            os.chmod(self.folder, 0o711)
            return self._make(self.folder)

    def _make(self, folder: str) -> str:
        path = f"{folder}/report-{self._made}"
        os.mkfifo(path, 0o600)
        self._taken += 1
        return path

    def give_back(self, path: str) -> None:
        """Nobody needs it any more."""
        with self._lock, contextlib.suppress(FileNotFoundError):
            folder = os.path.dirname(path)
            if folder == self.folder:
                self._taken -= 1
                if not self._taken:
                    self.folder = None
            os.unlink(path)
            if folder != self.folder:
                with contextlib.suppress(OSError):  # others of an older folder are still there
                    os.rmdir(folder)


def _tidy(place: str) -> None:
    """Remove what nodes of this user left behind that were killed."""
    with contextlib.suppress(OSError):
        for name in os.listdir(place):
            found = _FOLDER.fullmatch(name)
            path = os.path.join(place, name)
            if found and not _is_alive(int(found[1])) and os.lstat(path).st_uid == os.geteuid():
                shutil.rmtree(path, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_places = _Places()


class ReportChannel:
    """A named pipe, read until it is closed. All of this process lie in one folder, which is gone with the last."""

    def __init__(self, context: RunContext, owner: tuple[int, int] | None = None) -> None:
        self._context = context
        self._begun = b""
        self.path = _places.take()
        try:
            if owner is not None:
                os.chown(self.path, *owner)
            # For both ways, so that it never ends while no writer is there, and a writer never waits for a reader.
            self._pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except BaseException:
            _places.give_back(self.path)
            raise
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pipe, self._read)

    @classmethod
    @contextmanager
    def made(cls, context: RunContext, owner: tuple[int, int] | None = None) -> Iterator[str]:
        """Its path, while the block lasts. If there can be none, reports go nowhere: that is no reason not to work."""
        try:
            channel = cls(context, owner)
        except OSError as error:
            context.log(f"ostinato: there is no report channel, so progress and totals are lost: {error}")
            yield os.devnull
            return
        try:
            yield channel.path
        finally:
            channel.close()

    def close(self) -> None:
        """Read what is left, and be gone."""
        self._loop.remove_reader(self._pipe)
        for _ in range(_MOST_READS):  # somebody who fled may still be writing
            if not self._read():
                break
        if self._begun:
            self._heard(self._begun)
        os.close(self._pipe)
        _places.give_back(self.path)

    def _read(self) -> bool:
        try:
            data = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return False
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._heard(line)
        if len(self._begun) > _LONGEST_LINE:
            self._begun = b""
            self._context.log("ostinato: a report of more than 100 KB without a line end was dropped")
        return bool(data)

    def _heard(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            said = msgspec.json.decode(line)
            if not isinstance(said, Mapping) or not said.keys() & {"totals", "count", "progress"}:
                raise InvalidInput("it has neither totals nor count nor progress")
            # All of it is looked at before any of it counts.
            totals = self._totals(said)
            progress = _progress(said.get("progress"))
        except (InvalidInput, TypeError, ValueError, RecursionError) as error:
            short = self._context.mask.shortened
            self._context.log(
                f"ostinato: a report could not be read ({short(str(error), _SHOWN)}): {short(readable(line), _SHOWN)}"
            )
            return
        for name, value in totals.items():
            self._context.set_total(name, value)
        if progress is not None:
            self._context.progress(*progress)

    def _totals(self, said: Mapping[str, Any]) -> dict[str, float]:
        """What the totals that it names are after it."""
        known = self._context.totals
        after = dict(_numbers(said.get("totals")))
        for name, by in _numbers(said.get("count")):
            after[name] = finite(f"total {name!r}", after.get(name, known.get(name, 0)) + by)
        if len(known.keys() | after.keys()) > _MOST_TOTALS or any(len(name) > _LONGEST_NAME for name in after):
            raise InvalidInput(f"a run has at most {_MOST_TOTALS} totals with names of at most {_LONGEST_NAME} letters")
        return after


def _numbers(said: Any) -> Iterable[tuple[str, float]]:
    if said is None:
        return ()
    if not isinstance(said, Mapping):
        raise InvalidInput(f"totals cannot be {said!r}", hint='write {"totals": {"copied": 5}}')
    return [checked_total(name, value) for name, value in said.items()]


def _progress(said: Any) -> tuple[float, float | None, str] | None:
    match said:
        case None:
            return None
        case str() if (amounts := _AMOUNTS.fullmatch(said)) is not None:
            done, total, text = _number(amounts[1]), _number(amounts[2]) if amounts[2] else None, ""
        case int() | float() if not isinstance(said, bool):
            done, total, text = said, None, ""
        case dict() if "done" in said:
            fields: dict[str, Any] = said
            done, total, text = fields["done"], fields.get("total"), str(fields.get("text") or "")
        case _:
            raise InvalidInput(f"progress cannot be {said!r}", hint='write {"progress": {"done": 3}} or "3/10"')
    return finite("progress.done", done), None if total is None else finite("progress.total", total), text


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
