"""The service that sends: it claims what is owed to channels, sends it, and records what became of it.

Every node has one. A channel has at most one message under way over all nodes, and each has its own task, so that a
server that hangs delays nothing else. What a node that is gone had claimed is taken over and sent again, with the same
key. Neighbours: text.py says what is sent, channels.py sends it, models/quiet.py says when not.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar

from ostinato import failpoints
from ostinato.clock import SECOND, Clock, Micros, Signal, from_micros, micros_of, to_micros
from ostinato.config import Settings
from ostinato.errors import OstinatoError, StoreError, StoreUnavailable
from ostinato.logs import get_logger, one_line
from ostinato.models.ids import NodeId
from ostinato.models.incident import NO_INTERESTS, IncidentChange
from ostinato.models.notification import DeliveryFilter, DeliveryState, NoticeKind, Rule
from ostinato.models.quiet import held_until
from ostinato.notifications.base import SendError, Suppressed
from ostinato.notifications.channels import Channels
from ostinato.notifications.facts import gather
from ostinato.notifications.text import Message, compose
from ostinato.stores.base import NodeStore, Parcel, Settled, Store, Told
from ostinato.timing import parse_timing

__all__ = ["Notifier", "backoff", "has_sender", "is_busy"]

log = get_logger("ostinato.notifications")

T = TypeVar("T")

LONGEST_TRIED: Micros = 24 * 3_600 * SECOND
"""What could not be sent for so long since its first try is not news any more."""
_MOST_JOINED = 1_000
"""So many deliveries become one message at most."""
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
_LONGEST_ASKED = 3_600.0
"""The most that a server can put off the next try."""
_SPREAD = 0.25
_NOTHING_YET: Micros = SECOND
"""Before it is looked again, if something is due and yet nothing could be claimed: its channel is busy elsewhere."""


class Notifier:
    """Sends what this node can claim."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        node: Callable[[], NodeId],
        may_claim: Callable[[], bool],
        count: Callable[[str, str, int], None] = lambda *_: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._node = node
        self._may_claim = may_claim
        self._count = count
        """Told of each settled parcel: its channel, what became of it, and how many deliveries it had."""
        self._channels = Channels(settings)
        self._sending: dict[str, asyncio.Task[None]] = {}
        """By channel."""
        self.signal = Signal()
        self.interests = NO_INTERESTS
        """What rules want and who has an open incident, as of the last look: the recorder asks it."""
        self._is_unsure = False
        """Whether this node may have deliveries that it does not send."""
        self._owes = False
        """Whether something was recorded here that may still have to be sent."""
        self._meanwhile: list[IncidentChange] = []
        """What changed while it looked."""

    async def run(self) -> None:
        """Look whenever something changes or is due, and now and then in any case."""
        loop = asyncio.get_running_loop()
        longest = micros_of(self._settings.lease) // 3
        while True:
            looked = loop.time()
            claimed = await self.look()
            next_at, now = self.interests.next_at, self._clock.now()
            until = now + longest
            if next_at is not None:
                until = min(until, next_at if claimed else max(next_at, now + _NOTHING_YET))
            await self._clock.wait(self.signal, until)
            # A burst of changes is one look; a single one is looked at right away.
            await asyncio.sleep(max(0.0, looked + self._settings.tuning.send_look_seconds - loop.time()))

    async def send_due(self, only: str | None = None) -> None:
        """By hand: send all that can be sent now, or what is owed to this channel alone, and wait for it."""
        while await self.look(only) or self._sending:
            if self._sending:
                await asyncio.wait([*self._sending.values()])

    def told(self, told: Told) -> None:
        """What was recorded here opened or closed incidents, or is to be sent."""
        self._owes |= told.owed
        self._meanwhile += told.incidents
        self.interests = self.interests.after(told.incidents)
        self.signal.set()

    async def learn(self) -> None:
        """Read what rules want, who has an open incident, and when there is something to do."""
        self._meanwhile = []
        found = await self._store.notifications.interests()
        self.interests = found.after(self._meanwhile)

    async def look(self, only: str | None = None) -> int:
        """One look: make the summaries that are due, and begin to send what is ready; answers how many messages."""
        owes, self._owes = self._owes, False
        try:
            await self.learn()
        except BaseException:
            self._owes |= owes
            raise
        now = self._clock.now()
        is_due = self.interests.next_at is not None and self.interests.next_at <= now
        self._owes |= owes and is_due
        if not (is_due or self._is_unsure) or not self._may_claim():
            return 0
        for rule in await self._store.notifications.list_rules():
            if rule.digest_at is not None and rule.digest_at <= now:
                await self._owe_digest(rule, now)
        busy = set(self._sending)
        if only is not None:
            busy |= {channel.name for channel in await self._store.notifications.list_channels()} - {only}
        node = self._node()
        self._is_unsure = True  # until there is an answer: what was claimed without one is this node's all the same
        parcels = await self._store.notifications.claim_deliveries(node, now, sorted(busy), _MOST_JOINED)
        self._is_unsure = False
        for parcel in parcels:
            task = asyncio.get_running_loop().create_task(self._deliver(node, parcel), name=f"notify-{parcel.name}")
            self._sending[parcel.name] = task
            task.add_done_callback(lambda task, name=parcel.name: self._ended(name, task))  # type: ignore[misc]
        return len(parcels)

    async def close(self, seconds: float) -> None:
        """Send for a moment what was recorded here to the last, and wait for what is being sent; others send the rest,
        and what was broken off again."""
        try:
            async with asyncio.timeout(seconds):
                if self._owes and seconds:
                    await self.send_due()
                elif self._sending:
                    await asyncio.wait([*self._sending.values()])
        except TimeoutError:
            pass
        except StoreError as error:
            log.warning("what is owed to channels is left to others: %s", one_line(error))
        for task in [*self._sending.values()]:
            task.cancel()

    @property
    def next_at(self) -> Micros | None:
        """When there is something to send again, as the last look saw it; None if that is past."""
        next_at = self.interests.next_at
        return next_at if next_at is not None and next_at > self._clock.now() else None

    def _ended(self, channel: str, task: asyncio.Task[None]) -> None:
        if self._sending.get(channel) is task:
            del self._sending[channel]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("channel %s: %s", channel, error, exc_info=error)
            self._is_unsure = True
        self.signal.set()  # there may be more for it

    async def _owe_digest(self, rule: Rule, now: Micros) -> None:
        next_at: Micros | None = None
        try:
            timing = parse_timing(rule.digest or "", tz=rule.zone, stored=True)
            following = timing.anchored(from_micros(rule.created_at)).next_after(from_micros(now))
            next_at = None if following is None else to_micros(following)
        except OstinatoError as error:
            log.error("rule %s for channel %s makes no more summaries: %s", rule.id, rule.channel, one_line(error))
        await self._store.notifications.owe_digest(rule, next_at, now)

    async def _deliver(self, node: NodeId, parcel: Parcel) -> None:
        """Hold back, drop or send one parcel, and record it."""
        now, channel, first = self._clock.now(), parcel.channel, parcel.deliveries[0]
        if channel is None:
            await self._settle(node, parcel, "its channel was removed", dropped=True)
            return
        try:
            held = held_until(channel, first.kind, first.at, from_micros(now))
        except OstinatoError as error:
            held = None  # better at the wrong time than never
            log.error("channel %s has hours that cannot be read: %s", channel.name, one_line(error))
        if held is not None and not parcel.resent:
            until = to_micros(held)
            await self._insist(parcel.key, lambda: self._store.notifications.postpone_deliveries(node, parcel, until))
            return
        failure = await self._send(channel.url, parcel)
        failpoints.reach("notifications.sent")
        if failure is None:
            await self._settle(node, parcel)
        elif isinstance(failure, Suppressed):
            await self._settle(node, parcel, str(failure), dropped=True)
        else:
            await self._settle(node, parcel, str(failure), self._retry_at(parcel, failure))
        failpoints.reach("notifications.recorded")

    async def _send(self, url: str, parcel: Parcel) -> SendError | None:
        """Why it was not sent; None if it was. A late answer counts too."""
        tuning = self._settings.tuning
        try:
            message = await self._message(parcel)
        except Exception as error:
            log.exception("message #%s for channel %s cannot be put into words", parcel.key, parcel.name)
            return SendError(f"it cannot be put into words: {type(error).__name__}")
        sending = asyncio.ensure_future(self._channels.send(url, message))
        try:
            done, _ = await asyncio.wait({sending}, timeout=tuning.send_late_seconds)
            if not done:
                log.warning("channel %s has not answered for %g s", parcel.name, tuning.send_late_seconds)
                await asyncio.wait({sending}, timeout=tuning.send_hangs_seconds - tuning.send_late_seconds)
            if not sending.done():
                return SendError(f"no answer within {tuning.send_hangs_seconds:g} s")
            await sending
        except SendError as error:
            return error
        finally:
            sending.cancel()
        return None

    async def _message(self, parcel: Parcel) -> Message:
        read = partial(gather, self._store, parcel.deliveries, self._settings)
        facts = await self._insist(parcel.key, read, StoreUnavailable)
        return compose(parcel.deliveries, parcel.key, facts)

    def _retry_at(self, parcel: Parcel, failure: SendError) -> Micros | None:
        """When a failed parcel is tried again; None if it is not."""
        first, now = parcel.deliveries[0], self._clock.now()
        tried_at = now if first.tried_at is None else to_micros(first.tried_at)
        if first.kind is NoticeKind.TEST or now - tried_at >= LONGEST_TRIED:
            return None
        failures = 0 if parcel.channel is None else parcel.channel.failures
        pause = backoff(failures, random.random())
        if failure.retry_after is not None:
            pause = timedelta(seconds=min(failure.retry_after, _LONGEST_ASKED))
        return now + micros_of(pause)

    async def _settle(
        self,
        node: NodeId,
        parcel: Parcel,
        error: str | None = None,
        retry_at: Micros | None = None,
        *,
        dropped: bool = False,
    ) -> None:
        """Until the database takes it: what was sent must not be sent again for want of a note."""
        ids = [delivery.id for delivery in parcel.deliveries]
        settled = Settled(parcel.name, parcel.key, ids, self._clock.now(), error, retry_at, dropped)
        held = await self._insist(settled.key, lambda: self._store.notifications.settle_delivery(node, settled))
        _log(settled, held, is_test=parcel.deliveries[0].kind is NoticeKind.TEST)
        if held:
            self._count(settled.channel, _outcome(settled), len(settled.deliveries))

    async def _insist(self, key: str, ask: Callable[[], Awaitable[T]], trouble: type[StoreError] = StoreError) -> T:
        """Ask a database that is in trouble until it answers."""
        while True:
            try:
                return await ask()
            except trouble as error:
                log.warning("message #%s waits for the database: %s", key, one_line(error))
                await asyncio.sleep(self._settings.tuning.write_again_seconds)


async def has_sender(nodes: NodeStore, now: Micros) -> bool:
    """Whether a node lives: each of them sends what is owed to channels."""
    return any(node.state == "alive" for node in await nodes.list_nodes(now))


async def is_busy(store: Store, channel: str, since: Micros) -> bool:
    """Whether a process that was heard since then, one that drains say, is sending something to this channel: what else
    there is waits for that."""
    sending = DeliveryFilter(channel=channel, state=DeliveryState.SENDING, limit=1)
    senders = {one.node for one in await store.notifications.list_deliveries(sending)}
    return bool(senders) and any(id in senders and at > since for id, at in await store.nodes.signs_of_life())


def backoff(failures: int, spread: float) -> timedelta:
    """How long a channel rests after its next failure, when so many came before it in a row: 5 s, 10 s, … 5 m.

    `spread` is a number from 0 to 1.
    """
    pause = min(_FIRST_PAUSE * 2 ** min(failures, 10), _LONGEST_PAUSE)
    return timedelta(seconds=pause * (1 + _SPREAD * (2 * spread - 1)))


def _outcome(settled: Settled) -> str:
    if settled.error is None:
        return "sent"
    if settled.dropped:
        return "dropped"
    return "failed" if settled.retry_at is None else "retried"


def _log(settled: Settled, held: bool, *, is_test: bool) -> None:
    if not held:
        log.warning("message #%s for channel %s was taken over by another node", settled.key, settled.channel)
        return
    match _outcome(settled):
        case "sent":
            log.info("told channel %s (#%s)", settled.channel, settled.key)
        case "retried":
            log.warning("channel %s: %s; it is tried again", settled.channel, settled.error)
        case "failed" if not is_test:  # who asked for a test hears of it
            log.error("channel %s: %s; it is not tried again (#%s)", settled.channel, settled.error, settled.key)
        case _:
            log.info("channel %s: %s", settled.channel, settled.error)
