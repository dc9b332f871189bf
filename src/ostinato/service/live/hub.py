"""The live stream of one process: looks at the ledger while somebody listens, and publishes what happened in between.

The runner calls nobody and writes no event: `changes` finds what is new between two looks, whichever node did it. Who
was not here, or does not keep up, loads what it shows and listens from now on: nothing is kept for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec
from msgspec.structs import replace as fill

from ostinato.clock import Clock
from ostinato.errors import InvalidInput, StoreUnavailable
from ostinato.logs import get_logger
from ostinato.models.access import AuditFilter
from ostinato.models.ids import RunId
from ostinato.models.live import LiveEvent, LiveKind
from ostinato.models.run import RunFilter
from ostinato.models.states import RunState
from ostinato.service.live.changes import PublishedSoFar, Tail
from ostinato.service.live.listener import Happened, Listener, Skipped, Subscribed
from ostinato.service.live.output import OutputFeeds
from ostinato.service.runs import RunService
from ostinato.stores.base import Store, Watch
from ostinato.tuning import Tuning

__all__ = ["LiveHub"]

log = get_logger("ostinato.live")

LIMIT = 350
"""Rows of each kind in one look, with those that are read again."""
KNOWN_AT_FIRST = 200
"""Queued runs that the first look learns."""
SHARE = 10
"""A look that took long is followed by a pause this many times as long: the engine of this process comes first."""
SKIPPED_PAUSE = 2.0


class LiveHub:
    """Publishes to listeners what happens. It rests until the first one comes, and when the last one has gone."""

    def __init__(self, store: Store, clock: Clock, runs: RunService, zone: str, tuning: Tuning) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._tuning = tuning
        self._topics: dict[str, set[Listener]] = {}
        self._outputs = OutputFeeds(store, runs)
        self._turn = asyncio.Lock()
        """One look at a time, and nobody comes in while the task begins or ends."""
        self._task: asyncio.Task[None] | None = None
        self._so_far = PublishedSoFar(0, Tail(), Tail(), Tail())
        self._skipped = 0
        self._skipped_at = 0.0

    async def subscribe(self, listener: Listener, topic: str, cursor: str | None = None) -> None:
        """Publish a topic to a listener from now on; output from behind a cursor. To do it again is to begin anew."""
        kind, _, name = topic.partition(":")
        self.unsubscribe(listener, topic)
        if kind == "output":
            await self._outputs.subscribe(listener, topic, _number(name), cursor)
            listener.topics.add(topic)
            return
        if (kind == "overview") is bool(name) or kind not in ("overview", "schedule", "run", "session"):
            raise InvalidInput(
                f"there is no topic {topic[:80]!r}",
                field="topic",
                hint="take overview, schedule:NAME, run:ID, output:ID or session:KEY",
            )
        if kind == "run":
            _number(name)
        if cursor is not None:
            hint = "leave it out, and load what you show"
            raise InvalidInput(f"topic {topic[:80]!r} takes no cursor; output does", field="cursor", hint=hint)
        async with self._turn:
            if self._task is None:
                await self._begin()
            listener.put(Subscribed(topic))
            listener.topics.add(topic)
            self._topics.setdefault(topic, set()).add(listener)

    def unsubscribe(self, listener: Listener, topic: str) -> None:
        """Publish this topic to it no more."""
        listener.topics.discard(topic)
        self._outputs.unsubscribe(listener, topic)
        if topic in self._topics:
            self._topics[topic].discard(listener)
            if not self._topics[topic]:
                del self._topics[topic]

    def leave(self, listener: Listener) -> None:
        """Publish nothing more to it."""
        for topic in tuple(listener.topics):
            self.unsubscribe(listener, topic)

    async def close(self) -> None:
        """Stop looking."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._outputs.close()

    async def _begin(self) -> None:
        """Learn what is there, and look from now on."""
        watch = await self._store.watch()
        try:
            now = self._clock.now()
            runs = await self._store.runs.list_runs(RunFilter(limit=1, brief=True))
            events = await self._store.sessions.list_events(None, 0, 1, newest=True)
            audit = await self._store.access.list_audit(AuditFilter(limit=1))
            queued = RunFilter(states=(RunState.QUEUED,), limit=KNOWN_AT_FIRST, brief=True)
            waiting = [run.id for run in await self._store.runs.list_runs(queued)]
            self._so_far = PublishedSoFar(
                now, *(Tail(max((one.id for one in rows), default=0)) for rows in (runs, events, audit))
            )
            await self._look(asked=waiting)  # what it finds was there before
        except BaseException:
            await watch.close()
            raise
        self._skipped = 0
        self._task = asyncio.get_running_loop().create_task(self._run(watch), name="ostinato-live")

    async def _run(self, watch: Watch) -> None:
        """Look after every change, and every second, until nobody listens."""
        loop, tuning = asyncio.get_running_loop(), self._tuning
        try:
            while True:
                try:
                    async with self._turn:
                        if not self._topics:
                            self._task = None  # in the turn, so that who comes next begins anew
                            return
                        began = loop.time()
                        for event in await self._look():
                            self._publish(event)
                        self._publish_skipped()
                    ready_at = began + max(tuning.live_look_seconds, SHARE * (loop.time() - began))
                    await _changed(watch, tuning.live_pause_seconds)
                    await asyncio.sleep(max(0.0, ready_at - loop.time()))
                except StoreUnavailable as error:
                    log.warning("the live stream waits for the database: %s", error)
                    await asyncio.sleep(tuning.live_pause_seconds)
                except Exception:  # who listens would never hear why: it looks again, and they load anew
                    log.exception("the live stream could not read the ledger")
                    self._skipped += 1
                    await asyncio.sleep(tuning.live_pause_seconds)
        finally:
            await watch.close()

    async def _look(self, asked: Sequence[RunId] = ()) -> list[LiveEvent]:
        """What happened since the last look."""
        now, position = self._clock.now(), self._so_far.position()
        position = replace(position, runs=[*position.runs, *asked])
        events, skipped = self._so_far.changes(
            position, await self._store.runs.changes_since(position, LIMIT), now, LIMIT
        )
        self._skipped += skipped
        return events

    def _publish(self, event: LiveEvent) -> None:
        """Put an event to whoever listens to one of its topics; its JSON is made once."""
        json: msgspec.Raw | None = None
        for topic in _topics_of(event):
            for listener in tuple(self._topics.get(topic, ())):
                json = json or _encoded(event, self._zone)
                listener.put(Happened(topic, json))
                if listener.is_dropped:
                    self.leave(listener)

    def _publish_skipped(self) -> None:
        """In a flood, say now and then how much is left out: whoever hears it loads anew."""
        now = asyncio.get_running_loop().time()
        if not self._skipped or now - self._skipped_at < SKIPPED_PAUSE:
            return
        for topic, listeners in self._topics.items():
            for listener in listeners:
                listener.put(Skipped(topic, self._skipped))
        self._skipped, self._skipped_at = 0, now


def _encoded(event: LiveEvent, zone: str) -> msgspec.Raw:
    """An event as JSON; the zone is that of runs without a schedule."""
    if event.run is not None and event.run.zone is None:
        event = fill(event, run=fill(event.run, zone=zone))
    return msgspec.Raw(msgspec.json.encode(event))


def _topics_of(event: LiveEvent) -> Iterator[str]:
    if event.kind is not LiveKind.SESSION_EVENT:
        yield "overview"
    if event.schedule is not None:
        yield f"schedule:{event.schedule}"
    if event.run is not None:
        yield f"run:{event.run.id}"
    if event.session is not None:
        yield f"session:{event.session}"


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise InvalidInput(f"{text[:80]!r} is not the id of a run", field="topic", hint="write output:7 or run:7")
    return int(text)


async def _changed(watch: Watch, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await watch.changed()
    except TimeoutError:
        return
