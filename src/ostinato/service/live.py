"""The live stream of one process: looks at the ledger while somebody listens, and tells what happened in between.

The runner calls nobody and writes no event: `live_events` finds what is new between two looks, whichever node did it.
The last events stay in a ring, so that who comes back loses nothing; another hub's cursor is answered from the ledger.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec.structs import replace as fill

from ostinato.clock import Clock, Micros
from ostinato.errors import InvalidInput, StoreUnavailable
from ostinato.logs import get_logger
from ostinato.models.access import AuditFilter
from ostinato.models.ids import RunId
from ostinato.models.live import Changes, LiveEvent, LiveKind, Mark
from ostinato.models.states import RunState
from ostinato.service.live_cursor import Cursor
from ostinato.service.live_events import (
    FLOOD,
    FURTHER_BACK,
    Known,
    events_between,
    first_mark,
    known_at_first,
    next_mark,
)
from ostinato.service.live_listener import Happened, Listener, Skipped, Subscribed
from ostinato.service.live_output import OutputFeeds
from ostinato.service.runs import RunService
from ostinato.stores.base import Store, Watch
from ostinato.tuning import Tuning

__all__ = ["LiveHub"]

log = get_logger("ostinato.live")

LIMIT = 250
"""Rows of each kind in one look."""
RING = 5_000
SHARE = 10
"""A look that took long is followed by a pause this many times as long: the engine of this process comes first."""
SKIPPED_PAUSE = 2.0
LISTED_PAUSE = 60.0
_BEHIND_ALL = 1 << 62
_LAST_RUN = Mark(_BEHIND_ALL, _BEHIND_ALL, _BEHIND_ALL, _BEHIND_ALL)
"""Asks for nothing but the greatest id."""


class _Entry:
    """An event to tell; its JSON is made when the first listener wants it."""

    __slots__ = ("_event", "_json", "_zone", "cursor", "number", "topics")

    def __init__(self, event: LiveEvent, zone: str, number: int = 0, cursor: str | None = None) -> None:
        self.number = number
        self.cursor = cursor
        """Of an event in the ring. One of a replay has none of its own."""
        self.topics = tuple(_topics_of(event))
        self._event: LiveEvent | None = event
        self._zone = zone
        self._json = msgspec.Raw()

    @property
    def json(self) -> msgspec.Raw:
        if self._event is not None:
            self._json, self._event = _encoded(self._event, self._zone), None
        return self._json


@dataclass(frozen=True, slots=True)
class _Replay:
    """What the ledger says of the time since a cursor of another hub, whichever hub that is."""

    place: Cursor
    known: Known
    """What is known here."""
    entries: Sequence[_Entry]
    skipped: int


class LiveHub:
    """Tells listeners what happens. It rests until the first one comes, and a while after the last one went."""

    def __init__(self, store: Store, clock: Clock, runs: RunService, zone: str, tuning: Tuning) -> None:
        self._store = store
        self._tuning = tuning
        self._clock = clock
        self._zone = zone
        self._topics: dict[str, set[Listener]] = {}
        self._outputs = OutputFeeds(store, runs)
        self._turn = asyncio.Lock()
        """One look at a time, and no replay while one is under way."""
        self._task: asyncio.Task[None] | None = None
        self._id = ""
        self._number = 0
        self._ring: deque[_Entry] = deque(maxlen=RING)
        self._known: Known | None = None
        self._replayed: _Replay | None = None
        """The last answer from the ledger: whoever comes back has several topics, and others come back with it."""
        self._skipped = 0
        self._before_skipped: Cursor | None = None
        """Where to come back to while it is not said that something is left out."""
        self._skipped_at = 0.0
        self._listed_at = 0.0

    @property
    def is_looking(self) -> bool:
        """Whether somebody listens, or did until lately."""
        return self._task is not None

    @property
    def listeners(self) -> int:
        """How many listen to events."""
        return len({listener for listeners in self._topics.values() for listener in listeners})

    @property
    def followed(self) -> Sequence[RunId]:
        """The runs whose output somebody follows."""
        return self._outputs.followed

    async def subscribe(self, listener: Listener, topic: str, cursor: str | None = None) -> None:
        """Tell a listener of a topic, from now on, or from behind a cursor. To do it again is to begin anew."""
        kind, _, name = topic.partition(":")
        self.unsubscribe(listener, topic)
        if kind == "output":
            await self._outputs.subscribe(listener, topic, _number(name, "run"), cursor)
            listener.topics.add(topic)
            return
        if (kind == "overview") is bool(name) or kind not in ("overview", "schedule", "run", "session"):
            raise InvalidInput(
                f"there is no topic {topic[:80]!r}",
                field="topic",
                hint="take overview, schedule:NAME, run:ID, output:ID or session:KEY",
            )
        if kind == "run":
            _number(name, "run")
        since = None if cursor is None else Cursor.read(cursor)
        async with self._turn:
            known = await self._begun()
            replay = None
            if since is not None and not self._holds(since):
                replay = await self._replay(since)
                known = replay.known
            await self._admit(listener, topic, since, replay, known)

    def unsubscribe(self, listener: Listener, topic: str) -> None:
        """Tell it no more of this topic."""
        listener.topics.discard(topic)
        self._outputs.unsubscribe(listener, topic)
        if topic in self._topics:
            self._topics[topic].discard(listener)
            if not self._topics[topic]:
                del self._topics[topic]

    def leave(self, listener: Listener) -> None:
        """Tell it nothing more."""
        for topic in tuple(listener.topics):
            self.unsubscribe(listener, topic)

    async def close(self) -> None:
        """Stop looking; the ring is forgotten."""
        task, self._task, self._known = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._outputs.close()

    # --- coming in ------------------------------------------------------------------------------------------------

    def _holds(self, since: Cursor) -> bool:
        """Whether everything behind the cursor is in the ring."""
        oldest = self._ring[0].number if self._ring else self._number + 1
        return since.hub == self._id and oldest - 1 <= since.number <= self._number

    async def _replay(self, since: Cursor) -> _Replay:
        """What the ledger says of the time since a cursor of another hub.

        The hub looks first: what it tells later is then no older than what is told now, if some of it is told twice."""
        place, replay = replace(since, hub="", number=0), self._replayed
        if replay is not None and replay.place == place and replay.known is self._known:
            return replay
        here = await self._look(await self._begun())
        self._replayed = _Replay(place, here, *await self._told_since(since))
        return self._replayed

    async def _told_since(self, since: Cursor) -> tuple[Sequence[_Entry], int]:
        known = since.known()
        behind = (await self._store.runs.look(_LAST_RUN, 1)).last_run - since.run
        if behind > FLOOD:
            return (), behind
        mark = next_mark(known, FLOOD)
        changes = await self._store.runs.look(mark, FLOOD)
        return await asyncio.to_thread(_replayed, known, mark, changes, self._clock.now(), self._zone)

    async def _admit(
        self, listener: Listener, topic: str, since: Cursor | None, replay: _Replay | None, known: Known
    ) -> None:
        """Put what the listener has missed, and then everything. It breathes in between, for the engine; but the turn
        is kept, so nothing of the topic is told meanwhile."""
        here, back = str(self._place(known)), str(since)
        entries, skipped = self._missed(topic, since, replay), 0 if replay is None else replay.skipped
        # Who drops before the last of these comes back to the same place.
        listener.put(Subscribed(topic, back if entries or skipped else here))
        for number, entry in enumerate(entries, start=1):
            is_last = number == len(entries) and not skipped
            listener.put(Happened(topic, entry.cursor or (here if is_last else back), entry.json))
            if number % self._tuning.live_batch == 0:
                await asyncio.sleep(0)
        if skipped:
            listener.put(Skipped(topic, here, skipped))
        listener.topics.add(topic)
        self._topics.setdefault(topic, set()).add(listener)

    def _missed(self, topic: str, since: Cursor | None, replay: _Replay | None) -> Sequence[_Entry]:
        """What came behind a cursor: of a replay, or from the ring."""
        if since is None:
            return ()
        entries = replay.entries if replay is not None else (one for one in self._ring if one.number > since.number)
        return [entry for entry in entries if topic in entry.topics]

    # --- looking --------------------------------------------------------------------------------------------------

    async def _begun(self) -> Known:
        """What is known; the first listener makes the hub begin."""
        if self._task is not None and self._known is not None:
            return self._known
        watch = await self._store.watch()
        try:
            newest = await self._store.sessions.list_events(None, 0, 1, newest=True)
            audit = await self._store.access.list_audit(AuditFilter(limit=FURTHER_BACK))
            now = self._clock.now()
            last_run = (await self._store.runs.look(_LAST_RUN, 1)).last_run
            last_event, last_audit = (max((one.id for one in found), default=0) for found in (newest, audit))
            mark = first_mark(last_run, last_event, last_audit, now)
            changes = await self._store.runs.look(mark, LIMIT)
        except BaseException:
            await watch.close()
            raise
        self._id, self._number = secrets.token_hex(4), 0
        self._ring.clear()
        self._skipped, self._before_skipped = 0, None
        self._known = known = known_at_first(mark, changes, now, audit)
        loop = asyncio.get_running_loop()
        self._listed_at = loop.time()
        self._task = loop.create_task(self._run(watch), name="ostinato-live")
        return known

    async def _run(self, watch: Watch) -> None:
        """Look after every change, and every second, until nobody has listened for a while."""
        loop, tuning = asyncio.get_running_loop(), self._tuning
        heard_at = loop.time()
        try:
            while True:
                try:
                    async with self._turn:
                        began = loop.time()
                        heard_at = began if self._topics else heard_at
                        if began - heard_at > tuning.live_linger_seconds:
                            self._forget()  # in the turn, so that who comes next begins anew
                            return
                        await self._look(await self._begun())
                    ready_at = began + max(tuning.live_look_seconds, SHARE * (loop.time() - began))
                    await _changed(watch, tuning.live_pause_seconds)
                    await asyncio.sleep(max(0.0, ready_at - loop.time()))
                except StoreUnavailable as error:
                    log.warning("the live stream waits for the database: %s", error)
                    await asyncio.sleep(tuning.live_pause_seconds)
                except Exception:  # who listens would never hear why: it looks again
                    log.exception("the live stream could not look at the ledger")
                    await asyncio.sleep(tuning.live_pause_seconds)
        finally:
            self._forget()
            await watch.close()

    def _forget(self) -> None:
        """The task that looks ends; another one may have begun since."""
        if self._task is asyncio.current_task():
            self._task = self._known = None

    async def _look(self, known: Known) -> Known:
        """One look, and what it makes is told."""
        loop = asyncio.get_running_loop()
        # Some active runs may not be known: learn them now and then, if they are few enough by now.
        is_listed = known.is_partial and loop.time() - self._listed_at > LISTED_PAUSE
        now, limit = self._clock.now(), LIMIT
        mark = next_mark(known, FLOOD if is_listed else 0)
        told = events_between(known, mark, await self._store.runs.look(mark, limit), now, limit)
        # From here on nothing is waited for: it may be done by somebody who goes meanwhile, and others would miss it.
        if is_listed:
            self._listed_at = loop.time()
        before = self._place(known)
        if told.skipped and self._before_skipped is None:
            self._before_skipped = before
        self._known, self._replayed = told.known, None
        for event in told.events:
            self._tell(event, before)
        self._skipped += told.skipped
        self._tell_skipped(told.known)
        return told.known

    def _place(self, known: Known) -> Cursor:
        """Behind everything that was told; but before what is left out, as long as nobody was told that it is."""
        if self._before_skipped is not None:
            return replace(self._before_skipped, number=self._number)
        return Cursor.of(self._id, self._number, known)

    def _tell(self, event: LiveEvent, before: Cursor) -> None:
        """Number an event, keep it, and put it to whoever listens to one of its topics."""
        self._number += 1
        # Elsewhere the events of one look cannot be told apart: there the cursor leads back to before the look.
        cursor = before.behind(self._number)
        entry = _Entry(event, self._zone, self._number, cursor)
        self._ring.append(entry)
        for topic in entry.topics:
            for listener in tuple(self._topics.get(topic, ())):
                listener.put(Happened(topic, cursor, entry.json))
                if listener.is_dropped:
                    self.leave(listener)

    def _tell_skipped(self, known: Known) -> None:
        """In a flood, say now and then how much is not told: whoever hears it loads anew."""
        now = asyncio.get_running_loop().time()
        if not self._skipped or now - self._skipped_at < SKIPPED_PAUSE:
            return
        # Nobody must come back to before this with a cursor and think that nothing is missing.
        self._ring.clear()
        self._number += 1
        self._before_skipped = None
        cursor = str(self._place(known))
        for topic, listeners in list(self._topics.items()):
            for listener in tuple(listeners):
                listener.put(Skipped(topic, cursor, self._skipped))
        self._skipped, self._skipped_at = 0, now


def _replayed(known: Known, mark: Mark, changes: Changes, now: Micros, zone: str) -> tuple[Sequence[_Entry], int]:
    """The events of a look from a cursor on, and how much is left out. There may be thousands: call it in a thread."""
    again = [run for run in changes.active if run.state is RunState.QUEUED and run.attempt and run.id <= known.run]
    told = events_between(known, mark, replace(changes, seen=[*changes.seen, *again]), now, FLOOD)
    lists = (changes.new, changes.active, changes.running, changes.schedules, changes.events, changes.audit)
    is_cut = any(len(found) >= FLOOD for found in lists)
    return [_Entry(event, zone) for event in told.events], told.skipped + is_cut


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


def _number(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise InvalidInput(f"{text[:80]!r} is not the id of a {what}", field="topic", hint="write output:7 or run:7")
    return int(text)


async def _changed(watch: Watch, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await watch.changed()
    except TimeoutError:
        return
