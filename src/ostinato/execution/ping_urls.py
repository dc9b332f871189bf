"""Calls the `ping_url` of a run's policy, as healthchecks and its like expect it: URL/start, URL, URL/fail.

The runner tells of starts and ends; what is sent, is sent beside the run, in the order in which it happened, a few
times if need be, and never delays or fails it. Neighbours: executors/http, by which it is sent and judged.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ostinato.config import Settings
from ostinato.errors import InvalidInput
from ostinato.execution.executors.http.addresses import AllowedHosts
from ostinato.execution.executors.http.network import Network
from ostinato.execution.executors.http.request import Refusal, Request, Target, Trouble
from ostinato.execution.secrets import Mask, resolve_all
from ostinato.execution.threads import WorkerThreads
from ostinato.logs import get_logger, one_line
from ostinato.models.ids import RunId
from ostinato.models.output import output_text
from ostinato.models.run import Finish
from ostinato.models.states import RunState
from ostinato.plurals import counted

__all__ = ["PingUrls"]

log = get_logger("ostinato.execution")

AT_ONE_SERVER = 4
"""So many calls of one server are under way at once; the others wait, so that one that hangs delays its own alone."""
AT_ONCE = 64
"""And of all servers."""
MOST_FOR_ONE_SERVER = 200
"""So many are sent to one server or wait for it; what comes then is dropped."""
MOST_IN_ALL = 2000
TELL_AGAIN = 60.0
"""Seconds between two lines of the log that say that calls are dropped."""
LONGEST_BODY = 10_000
"""Characters of the reason and the output that are sent."""


@dataclass(slots=True)
class _Server:
    """One that is being called."""

    room: asyncio.Semaphore
    calls: int = 0
    """How many are under way or wait."""


class _Dropped(Exception):
    """Too many calls wait for this server already."""


class PingUrls:
    """Sends them from the loop of a node."""

    def __init__(self, settings: Settings, threads: WorkerThreads) -> None:
        self._network = Network(AllowedHosts(settings.http_allow), threads)
        self._tuning = settings.tuning
        self._room = asyncio.Semaphore(AT_ONCE)
        self._servers: dict[str, _Server] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: dict[RunId, asyncio.Task[None]] = {}
        """Of each run that something is being sent of, the last."""
        self.dropped = 0
        """How many calls were not made because too many waited."""
        self._dropped_told = 0
        self._dropped_told_at: float | None = None

    def started(self, id: RunId, url: str) -> None:
        """Its work begins."""
        self._send(id, url, "/start", "")

    def ended(self, finish: Finish, url: str) -> None:
        """It has ended; one that goes back to the queue has not."""
        if finish.state is RunState.QUEUED:
            return
        succeeded = finish.state is RunState.SUCCEEDED and finish.cause is None
        self._send(finish.id, url, "" if succeeded else "/fail", _said(finish))

    async def close(self, seconds: float) -> None:
        """Let what is on its way arrive, within these seconds, and give up the rest."""
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self.dropped > self._dropped_told:
            self._tell_dropped()

    def _send(self, id: RunId, url: str, suffix: str, body: str) -> None:
        if len(self._tasks) >= MOST_IN_ALL:
            self._drop()
            return
        sending = self._after(self._last.get(id), id, url, suffix, body.encode("utf-8", "backslashreplace"))
        task = self._last[id] = asyncio.get_running_loop().create_task(sending)
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._forget(id, ended))

    def _forget(self, id: RunId, ended: asyncio.Task[None]) -> None:
        self._tasks.discard(ended)
        if self._last.get(id) is ended:
            del self._last[id]

    async def _after(self, before: asyncio.Task[None] | None, id: RunId, url: str, suffix: str, body: bytes) -> None:
        if before is not None:
            await asyncio.wait([before])
        mask = Mask([url])
        try:
            address = url if _ADDRESS.match(url) else await asyncio.to_thread(_resolved, url)
            mask = Mask([address, Target.of(address).path])
            target = Target.of(_with_suffix(address, suffix))
            with self._waiting_for(target.authority) as server:
                await self._try(Request("POST", target, _HEADERS, body), server)
        except _Dropped:
            self._drop()
        except (Refusal, Trouble, TimeoutError, InvalidInput, ValueError, OSError) as error:
            said = "it did not answer in time" if isinstance(error, TimeoutError) else mask.hide(one_line(error))
            log.warning("the ping_url of run %s could not be called%s: %s", id, suffix and f" with {suffix}", said)

    @contextmanager
    def _waiting_for(self, authority: str) -> Iterator[_Server]:
        server = self._servers.setdefault(authority, _Server(asyncio.Semaphore(AT_ONE_SERVER)))
        if server.calls >= MOST_FOR_ONE_SERVER:
            raise _Dropped
        server.calls += 1
        try:
            yield server
        finally:
            server.calls -= 1
            if not server.calls:
                del self._servers[authority]

    def _drop(self) -> None:
        self.dropped += 1
        now = asyncio.get_running_loop().time()
        if self._dropped_told_at is None or now - self._dropped_told_at >= TELL_AGAIN:
            self._tell_dropped()

    def _tell_dropped(self) -> None:
        self._dropped_told, self._dropped_told_at = self.dropped, asyncio.get_running_loop().time()
        log.warning("servers are too slow, or hang: %s of ping_url dropped so far", counted(self.dropped, "call"))

    async def _try(self, request: Request, server: _Server) -> None:
        """Send it; again, a moment later each time, if nobody answers or the server has trouble."""
        for wait in self._tuning.ping_url_waits:
            try:
                await self._call(request, server)
                return
            except (Trouble, TimeoutError):
                await asyncio.sleep(wait)
        await self._call(request, server)

    async def _call(self, request: Request, server: _Server) -> None:
        # Here, because most who start a node call nobody, and the library takes a while.
        from ostinato.execution.executors.http.exchange import exchange
        from ostinato.execution.executors.http.line import Line

        line = Line(self._network, self._tuning)
        try:
            async with server.room, self._room, asyncio.timeout(self._tuning.ping_url_seconds):
                answer = await exchange(request, line, lambda status: status < 300)
            # Its status says all: nobody reads its body.
            if answer.status >= 500 or answer.status == 429:
                raise Trouble(f"HTTP {answer.status}")
            if answer.status >= 400:
                raise Refusal(f"HTTP {answer.status}")
        finally:
            line.close()


_ADDRESS = re.compile("https?://")
_HEADERS = {
    "User-Agent": "Ostinato",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Content-Type": "text/plain; charset=utf-8",
}


def _resolved(url: str) -> str:
    """The address, which may be a reference to a secret: read anew each time. It may read a file."""
    resolved, _ = resolve_all({"ping_url": url}, os.environ, Path.cwd())
    return resolved["ping_url"].strip()


def _with_suffix(address: str, suffix: str) -> str:
    """The suffix goes behind the path, and before a query."""
    place, question, query = address.partition("?")
    return f"{place.rstrip('/')}{suffix}{question}{query}" if suffix else address


def _said(finish: Finish) -> str:
    """Why it ended so, and the end of what it printed."""
    output = output_text(finish.output)
    room = LONGEST_BODY - len(finish.reason or "") - 1
    return "\n".join(part for part in (finish.reason, output[-max(room, 0) :]) if part)[:LONGEST_BODY]
