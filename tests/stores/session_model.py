"""Sessions as a few lists in memory: the rules of `models/session.py` and `stores/base.py`, and no database.

`test_session_model` puts the same things into this and into a real store, and wants the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ostinato.clock import Micros
from ostinato.models.run import CLEARED, INTERRUPTED, NEVER_STARTED
from ostinato.models.session import DROPPED, STALE, STOPPED, Delivery, Drop, Mode, Stopped
from ostinato.models.states import RunState

__all__ = ["Answer", "Entry", "Letter", "Mailbox", "Post", "Told"]

Told = tuple[str, str, int | None]
"""An event: its kind, its session, and whose row it is about."""


@dataclass(frozen=True)
class Letter:
    """A message that somebody wants to send."""

    session: str
    task: str = "report"
    agent: Literal["chat", "opus", "fresh"] | None = None
    """Who gets it instead of a task: two that continue the session's conversation, and one that begins a new one."""
    mode: Mode = Mode.QUEUE
    lane: str = "main"
    priority: int = 0
    max_concurrent: int | None = None
    cap: int | None = None
    drop: Drop = Drop.OLD
    debounce: Micros = 0
    ceiling: Micros = 0
    max_age: Micros | None = None
    delay: Micros = 0
    """How long it is on its way."""
    is_call: bool = False
    """Whether code enqueues it: it only takes its turn, and no message pushes it out."""
    later: Micros = 0
    """How long after it was sent a call is to start."""

    @property
    def goes_alone(self) -> bool:
        """Whether it goes beside no other run of its session."""
        return self.mode is Mode.FOLLOWUP or self.agent in ("chat", "opus")

    def is_like(self, other: Letter) -> bool:
        """Whether one run can carry both."""
        return (self.agent or f"task {self.task}", self.mode) == (other.agent or f"task {other.task}", other.mode)


@dataclass
class Entry:
    """What became of one letter: the row of the ledger that is its own."""

    number: int
    letter: Letter
    sent_at: Micros
    ready_at: Micros
    expires_at: Micros | None
    payloads: list[int]
    state: RunState = RunState.QUEUED
    reason: str | None = None
    finished_at: Micros | None = None
    has_turn: bool = False
    has_begun: bool = False
    is_burst: bool = False
    """Whether others may still join it."""
    is_early: bool = False
    """Whether its time has not come, and it stands in no queue yet."""
    carrier: int | None = None
    """Whose run carries its payload, if not its own."""
    stop_reason: str | None = None
    attempt: int = 0
    node: str | None = None

    @property
    def is_queued(self) -> bool:
        return self.state is RunState.QUEUED

    @property
    def is_running(self) -> bool:
        return self.state is RunState.RUNNING


@dataclass
class Mailbox:
    """A session."""

    max_concurrent: int = 1
    throttled: bool = False
    cutoff: Micros | None = None
    most: int = 1
    """The highest limit that it ever had."""

    @property
    def limit(self) -> int:
        return 1 if self.throttled else self.max_concurrent


@dataclass(frozen=True)
class Answer:
    """What a send did, with numbers of letters for ids."""

    delivery: Delivery
    carrier: int | None
    dropped: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)


class Post:
    """All sessions."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        """In the order sent, which is the order of their rows. A refused letter has none."""
        self.boxes: dict[str, Mailbox] = {}
        self.events: list[Told] = []

    # --- looking

    def active(self, session: str) -> list[Entry]:
        return [one for one in self.entries.values() if one.letter.session == session and self._is_active(one)]

    def queued(self, session: str | None = None) -> list[Entry]:
        wanted = self.entries.values()
        return [one for one in wanted if one.is_queued and session in (None, one.letter.session)]

    def running(self) -> list[Entry]:
        return [one for one in self.entries.values() if one.is_running]

    def bound(self, node: str) -> list[Entry]:
        """Queued, and only this node may start them."""
        return [one for one in self.queued() if one.node == node]

    def with_turn(self) -> list[Entry]:
        """Queued, and only their lane and their time can hold them up."""
        return [one for one in self.queued() if one.has_turn]

    def claimable(self, lane: str, now: Micros, ahead: Micros) -> list[Entry]:
        """What may start, first things first. A burst is not started ahead of its close."""
        ready = [
            one
            for one in self.with_turn()
            if one.letter.lane == lane and one.node is None and one.ready_at <= (now if one.is_burst else now + ahead)
        ]
        return sorted(ready, key=lambda one: (-one.letter.priority, one.ready_at, one.number))

    @staticmethod
    def _is_active(entry: Entry) -> bool:
        return entry.is_queued or entry.is_running

    # --- sending

    def send(self, number: int, letter: Letter, now: Micros) -> Answer:
        """One letter arrives."""
        sent_at = now - letter.delay
        box = self.boxes.get(letter.session)
        if box is not None and box.cutoff is not None and sent_at < box.cutoff:
            self._record(number, letter, now).reason = STALE.reason
            self._tell("dropped", letter.session, number)
            return Answer(Delivery.STALE, number)
        self._settle(letter)
        burst = self._burst_for(letter, now)
        cancelled = self._interrupt(letter, burst, now) if letter.mode is Mode.INTERRUPT else []
        if burst is not None:
            burst.payloads.append(number)
            burst.ready_at = self._close(letter, burst.sent_at, now)
            self._record(number, letter, now).carrier = burst.number
            self._tell("debounced", letter.session, number)
            answer = Answer(Delivery.DEBOUNCED, burst.number, cancelled=cancelled)
        else:
            answer = self._enqueue(number, letter, cancelled, now)
        self.give_turns(letter.session)
        return answer

    def bind(self, number: int, letter: Letter, node: str, now: Micros) -> Answer:
        """A node wants to execute something itself."""
        answer = self.send(number, letter, now)
        self.entries[number].node = node
        return answer

    def _settle(self, letter: Letter) -> None:
        box = self.boxes.setdefault(letter.session, Mailbox())
        if letter.max_concurrent is not None:
            box.max_concurrent = letter.max_concurrent
        box.most = max(box.most, box.limit)

    def _burst_for(self, letter: Letter, now: Micros) -> Entry | None:
        """The newest in the queue, if it is an open burst that this letter goes with."""
        queue = [one for one in self.queued(letter.session) if not one.is_early]
        if not letter.debounce or not queue or not queue[-1].is_burst:
            return None
        newest = queue[-1]
        is_alike = newest.letter.is_like(letter)
        is_open = newest.ready_at > now or letter.mode is Mode.FOLLOWUP
        return newest if is_alike and is_open else None

    def _interrupt(self, letter: Letter, spared: Entry | None, now: Micros) -> list[int]:
        told = []
        for one in self.active(letter.session):
            if one.is_queued and one is not spared:
                self._end(one, RunState.SUPERSEDED, INTERRUPTED.reason, now)
            elif one.is_running and one.stop_reason is None:
                one.stop_reason = INTERRUPTED.reason
                told.append(one.number)
        return told

    def _enqueue(self, number: int, letter: Letter, cancelled: list[int], now: Micros) -> Answer:
        dropped: list[int] = []
        if letter.cap is not None:
            fresh = [one for one in self.queued(letter.session) if not one.has_begun and not one.letter.is_call]
            if len(fresh) >= letter.cap and letter.drop is Drop.NEW:
                self._tell("dropped", letter.session, None)
                return Answer(Delivery.REFUSED, None)
            while len(fresh) >= letter.cap:
                oldest = fresh.pop(0)
                self._end(oldest, RunState.SKIPPED, DROPPED.reason, now)
                dropped.append(oldest.number)
        entry = self._record(number, letter, now, state=RunState.QUEUED)
        entry.is_burst = letter.debounce > 0
        if entry.is_burst:
            entry.ready_at = self._close(letter, entry.sent_at, now)
        entry.is_early = not entry.is_burst and entry.ready_at > now
        self._tell("enqueued", letter.session, number)
        return Answer(Delivery.QUEUED, number, dropped, cancelled)

    def _record(self, number: int, letter: Letter, now: Micros, state: RunState = RunState.SKIPPED) -> Entry:
        sent_at = now - letter.delay
        entry = Entry(
            number,
            letter,
            sent_at=sent_at,
            ready_at=sent_at + letter.later,
            expires_at=None if letter.max_age is None else sent_at + letter.max_age,
            payloads=[number],
            state=state,
            finished_at=now if state is RunState.SKIPPED else None,
        )
        self.entries[number] = entry
        return entry

    @staticmethod
    def _close(letter: Letter, first_sent_at: Micros, now: Micros) -> Micros:
        """The timer starts anew, up to the ceiling."""
        return min(now + letter.debounce, first_sent_at + max(letter.ceiling, letter.debounce))

    # --- turns

    def give_turns(self, session: str) -> None:
        """First come, first served, while there is room; what goes alone only into an empty room."""
        box = self.boxes[session]
        while True:
            inside = [one for one in self.active(session) if one.has_turn]
            outside = [one for one in self.active(session) if not one.has_turn and not one.is_early]
            if not outside or len(inside) >= box.limit:
                return
            if inside and any(one.letter.goes_alone for one in (outside[0], *inside)):
                return
            outside[0].has_turn = True

    # --- what happens to runs

    def settle(self, now: Micros, ahead: Micros) -> None:
        """A claim first ends what waited too long, and then lets queue up what was to start later."""
        for one in self.queued():
            if one.expires_at is not None and one.expires_at <= now:
                self._end(one, RunState.EXPIRED, "waited longer than its max age before it could start", now)
        self._give_all_turns()
        for one in self.queued():
            one.is_early = one.is_early and one.ready_at > now + ahead
        self._give_all_turns()

    def would_wait(self, letter: Letter) -> bool:
        """Whether it could not start at once."""
        if (box := self.boxes.get(letter.session)) is None:
            return False
        inside = [one for one in self.active(letter.session) if one.has_turn]
        is_ahead = any(not one.has_turn and not one.is_early for one in self.active(letter.session))
        alone = any(one.goes_alone for one in (letter, *(one.letter for one in inside)))
        return is_ahead or len(inside) >= box.limit or (bool(inside) and alone)

    def lose(self, node: str, now: Micros) -> list[int]:
        """What a lost node was to execute itself, and has not started, has failed; answers whose."""
        lost = self.bound(node)
        for one in lost:
            self._end(one, RunState.FAILED, NEVER_STARTED.reason, now)
        self._give_all_turns()
        return [one.number for one in lost]

    def start(self, entry: Entry, node: str) -> None:
        entry.state, entry.node, entry.reason = RunState.RUNNING, node, None
        entry.has_begun, entry.is_burst = True, False
        entry.attempt += 1
        self._tell("started", entry.letter.session, entry.number)

    def hold_back(self, unstarted: Sequence[Entry], full: Iterable[str], now: Micros) -> list[int]:
        """Sessions are full, of which a node has claimed these and not started them; answers which may start."""
        allowed = []
        for session in sorted(set(full)):
            self.boxes[session].throttled = True
            inside = [one for one in self.active(session) if one.has_turn]
            is_under_way = any(one.is_running and one not in unstarted for one in inside)
            may_go = [one for one in inside if one.stop_reason is None and not is_under_way][:1]
            allowed += [one.number for one in may_go if one in unstarted]
            for one in inside:
                if one not in may_go and (one.is_queued or one in unstarted):
                    self._take_turn_back(one, now)
            self.give_turns(session)
        return sorted(allowed)

    def _take_turn_back(self, entry: Entry, now: Micros) -> None:
        entry.has_turn = False
        if entry.is_running:
            entry.state, entry.node = RunState.QUEUED, None
            entry.attempt -= 1
        if entry.stop_reason is not None:
            self._end(entry, self._stopped_state(entry), entry.stop_reason, now)

    def unthrottle(self, sessions: Iterable[str]) -> None:
        """They are full no longer."""
        for session in set(sessions) & set(self.boxes):
            box = self.boxes[session]
            was_throttled, box.throttled = box.throttled, False
            box.most = max(box.most, box.limit)
            if was_throttled:
                self.give_turns(session)

    def finish(self, entry: Entry, state: RunState, reason: str | None, now: Micros, throttled: bool | None) -> None:
        """An execution has ended for good."""
        self._end(entry, state, reason, now)
        if throttled is not None:
            box = self.boxes[entry.letter.session]
            box.throttled = throttled
            box.most = max(box.most, box.limit)

    def try_again(
        self, entry: Entry, how: Literal["retry", "snooze"], reason: str, ready_at: Micros, now: Micros
    ) -> None:
        """Back to the queue, with its turn; but what was told to stop gets no other try."""
        if entry.stop_reason is not None:
            self._end(entry, self._stopped_state(entry), entry.stop_reason, now)
            return
        entry.state, entry.reason, entry.ready_at, entry.node = RunState.QUEUED, reason, ready_at, None
        entry.expires_at = None
        if how == "snooze":
            entry.attempt -= 1

    def ended(self, sessions: Iterable[str]) -> None:
        """After ends: the next ones."""
        for session in sessions:
            self.give_turns(session)

    def cancel(self, entry: Entry, reason: str, now: Micros) -> None:
        if entry.is_queued:
            self._end(entry, RunState.CANCELLED, reason, now)
        elif entry.stop_reason is None:
            entry.stop_reason = reason
        self.give_turns(entry.letter.session)

    def clear(self, lane: str, now: Micros) -> int:
        """End what is queued in a lane; answers how many."""
        cleared = [one for one in self.queued() if one.letter.lane == lane]
        for one in cleared:
            self._end(one, RunState.CANCELLED, CLEARED.reason, now)
        self._give_all_turns()
        return len(cleared)

    def stop(self, session: str, now: Micros) -> Stopped:
        """The oldest that has its turn and does not know yet; a session that nobody used is not there to be stopped."""
        if session not in self.boxes:
            return Stopped()
        stopped = Stopped()
        for one in self.active(session):
            if one.has_turn and one.stop_reason is None:
                stopped = Stopped(cancelled=int(one.is_running), dropped=int(one.is_queued))
                self.cancel(one, STOPPED.reason, now)
                break
        self._tell("stopped", session, None)
        return stopped

    def stop_all(self, session: str, now: Micros) -> Stopped:
        box = self.boxes.setdefault(session, Mailbox())
        box.cutoff = now if box.cutoff is None else max(now, box.cutoff)
        queued = self.queued(session)
        untold = [one for one in self.active(session) if one.is_running and one.stop_reason is None]
        for one in queued:
            self._end(one, RunState.CANCELLED, STOPPED.reason, now)
        for one in untold:
            one.stop_reason = STOPPED.reason
        self._tell("stopped", session, None)
        return Stopped(cancelled=len(untold), dropped=len(queued))

    @staticmethod
    def _stopped_state(entry: Entry) -> RunState:
        return RunState.SUPERSEDED if entry.stop_reason == INTERRUPTED.reason else RunState.CANCELLED

    def _end(self, entry: Entry, state: RunState, reason: str | None, now: Micros) -> None:
        never_ran = entry.is_queued
        entry.state, entry.reason, entry.finished_at = state, reason, now
        kind = "dropped" if never_ran and state is RunState.SKIPPED else "finished"
        self._tell(kind, entry.letter.session, entry.number)

    def _give_all_turns(self) -> None:
        for session in self.boxes:
            self.give_turns(session)

    def _tell(self, kind: str, session: str, number: int | None) -> None:
        self.events.append((kind, session, number))

    def take_events(self) -> Sequence[Told]:
        told, self.events = self.events, []
        return told
