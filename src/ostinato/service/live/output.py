"""Output as it comes, for the live stream: all who follow one run share one reader.

Lines can be read again at any time, so a listener gets the next ones when it has taken those before; lines.py
finds them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ostinato.errors import InvalidInput, NotFound, OstinatoError
from ostinato.logs import get_logger
from ostinato.models.ids import RunId
from ostinato.service.live.lines import Output
from ostinato.service.live.listener import Ended, Failed, Lines, Listener, Subscribed
from ostinato.service.runs import RunService
from ostinato.service.shapes import line_shape
from ostinato.stores.base import Store

__all__ = ["OutputFeeds"]

log = get_logger("ostinato.live")

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.25
"""Between two looks: a node writes what is new twice a second."""
AT_ONCE = 500
"""Lines in one message."""
WAITING = 20
"""Messages that a listener may leave before it gets more lines."""


class _Follower:
    """How far one listener has got."""

    def __init__(self, listener: Listener, topic: str, after: int) -> None:
        self.listener = listener
        self.topic = topic
        self.after = after
        self.is_behind = True
        """There may be lines that it was not told, whether or not something new came."""


class OutputFeeds:
    """The runs whose output somebody follows."""

    def __init__(self, store: Store, runs: RunService) -> None:
        self._store = store
        self._runs = runs
        self._followers: dict[RunId, list[_Follower]] = {}
        self._tasks: dict[RunId, asyncio.Task[None]] = {}

    async def subscribe(self, listener: Listener, topic: str, id: int, cursor: str | None) -> None:
        """Tell the lines behind the number that the cursor is, and then each as it comes."""
        if cursor is not None and (not cursor.isdecimal() or len(cursor) > 18):
            raise InvalidInput(f"{cursor[:80]!r} is not a line", field="cursor", hint="give the number of the last one")
        run = await self._runs.get(id)
        listener.put(Subscribed(topic, str(int(cursor or 0))))
        followers = self._followers.setdefault(run.id, [])
        followers.append(_Follower(listener, topic, int(cursor or 0)))
        if run.id not in self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks[run.id] = loop.create_task(self._follow(run.id), name=f"ostinato-output-{run.id}")

    def unsubscribe(self, listener: Listener, topic: str) -> None:
        """Tell it no more of this topic; the reader ends with its last follower."""
        for followers in self._followers.values():
            followers[:] = [one for one in followers if not (one.listener is listener and one.topic == topic)]

    async def close(self) -> None:
        """End all readers."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, id: RunId) -> None:
        """Read and tell until nobody follows, or the run has ended and all have heard all of it."""
        followers = self._followers[id]
        pause, seen, output = FIRST_PAUSE, None, Output(())
        try:
            while followers:
                # The state first: what is printed before an end is in the output that is read after it.
                is_over = (await self._runs.get(id)).ended
                before, seen = seen, (is_over, await self._store.runs.output_mark(id))
                if seen != before:
                    output = Output(await self._store.runs.read_output(id), output, is_over=is_over)
                    for one in followers:
                        one.is_behind = True
                pause = min(pause * 2, LONGEST_PAUSE)
                while ready := [one for one in followers if one.is_behind and one.listener.waiting < WAITING]:
                    pause = FIRST_PAUSE
                    await _tell(ready, followers, output)
                    _end(followers, output)
                if followers:
                    await asyncio.sleep(pause)
        except OstinatoError as error:
            gone = NotFound(f"run {id} was removed") if isinstance(error, NotFound) else error
            for one in followers:
                one.listener.topics.discard(one.topic)
                one.listener.put(Failed(one.topic, gone))
        except Exception:  # nobody awaits this task: who follows must hear of it, and the log says what it was
            log.exception("the output of run %s could not be followed", id)
            for one in followers:
                one.listener.topics.discard(one.topic)
                one.listener.put(Failed(one.topic, OstinatoError(f"the output of run {id} cannot be followed")))
        finally:
            del self._followers[id], self._tasks[id]


async def _tell(ready: Sequence[_Follower], followers: Sequence[_Follower], output: Output) -> None:
    """Put the next lines to each of these. They are parsed in a thread: there may be a megabyte of them."""
    places: dict[int, list[_Follower]] = {}
    for one in ready:
        places.setdefault(one.after, []).append(one)
    for after, same in places.items():
        last, shapes, has_more = await asyncio.to_thread(_shapes, output, after)
        for one in same:
            if one not in followers:
                continue  # it left meanwhile, and may have begun anew
            one.after, one.is_behind = last, has_more
            if shapes:
                one.listener.put(Lines(one.topic, str(last), shapes))


def _shapes(output: Output, after: int) -> tuple[int, list[dict[str, Any]], bool]:
    lines, has_more = output.lines(after, AT_ONCE)
    last = max((line.number for line in lines if line.number is not None), default=after)
    return last, [line_shape(line) for line in lines], has_more


def _end(followers: list[_Follower], output: Output) -> None:
    """Whoever has heard all of a run that has ended hears that it has."""
    for one in [one for one in followers if output.is_over and not one.is_behind]:
        one.listener.topics.discard(one.topic)
        one.listener.put(Ended(one.topic))
        followers.remove(one)
