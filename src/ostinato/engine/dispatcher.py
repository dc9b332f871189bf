"""Step four of a fire: claim queued runs, as many as lanes and slots have room for, and start each on time.

A claim takes what is ready within CLAIM_AHEAD; what comes early is held here and started at its instant. When the
recorder writes finishes it claims in the same transaction, with `request` and `accept`: one commit for both. While the
fence says that the lease may have run out, nothing is claimed and nothing starts; while the database does not take the
ends of what ran, nothing is claimed without them. What is claimed of a session that is full starts only when the store
allows it (admission.py).
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ostinato import failpoints
from ostinato.announcer import Announcer
from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.engine.admission import Admission
from ostinato.engine.quarantine import Quarantine
from ostinato.engine.statistics import Statistics
from ostinato.errors import StoreError
from ostinato.execution.outcome import Outcome, OutcomeKind, ended
from ostinato.execution.runner import ActiveRun, Runner
from ostinato.models.ids import NodeId, RunId
from ostinato.models.run import ClaimedRun, Ending
from ostinato.stores.base import Claim, Claimed, RunStore
from ostinato.tracing import find_tracer

if TYPE_CHECKING:
    from opentelemetry.trace import Link

__all__ = ["Dispatcher"]

CLAIM_AHEAD: Micros = SECOND // 10
LOOK_AGAIN: Micros = SECOND
"""When ready work was left for want of room, other nodes may make room without telling us."""


class Dispatcher:
    """Claims and starts runs for one node."""

    def __init__(
        self,
        runs: RunStore,
        runner: Runner,
        clock: Clock,
        node: NodeId,
        slots: int,
        quarantine: Quarantine,
        admission: Admission,
        statistics: Statistics | None = None,
        may_start: Callable[[], bool] = lambda: True,
        announcer: Announcer | None = None,
    ) -> None:
        self._runs = runs
        self._quarantine = quarantine
        self._admission = admission
        self._may_start = may_start
        """Asked once for all that is to start; after a no, `wake` follows when it may."""
        self._statistics = statistics or Statistics()
        self._announcer = announcer or Announcer()
        self._runner = runner
        self._clock = clock
        self.node = node
        self._slots = slots
        self._tasks: Sequence[str] = ()
        self._tasks_json = "[]"
        self._claimed_ahead: list[tuple[Micros, RunId, ActiveRun]] = []
        self._is_claiming = False
        self.claims_begun = 0
        self.claims_ended = 0
        self._asked_at: Micros = 0
        """When the claim under way was asked for."""
        self._claim_at: Micros | None = 0
        """When a claim is worth trying; None until somebody tells."""
        self._ask_again = False
        self._cancelled: dict[RunId, Ending] = {}
        """What was to be stopped while a claim was under way that may have taken it."""
        self._next_ready_at: Micros | None = None
        self._is_fenced = False
        """Held runs are due and may not start: no instant is worth waking up for, only `wake`."""
        self._claim_fault: str | None = None
        """Why the last claim failed."""
        self._end_fault: str | None = None
        """Why the ends of what ran could not be written: what is claimed now would end like them."""
        self.is_open = True
        self.signal = Signal()
        self._unclaimed = asyncio.Event()
        """Set while no claim is under way."""
        self._unclaimed.set()

    def know(self, tasks: Sequence[str]) -> None:
        """The tasks that this node can execute."""
        self._tasks = tuple(tasks)
        self._tasks_json = msgspec.json.encode(self._tasks).decode()

    def wake(self) -> None:
        """There may be something to claim."""
        self._claim_at = 0
        self.signal.set()

    def expect(self, ready_at: Micros) -> None:
        """Something is ready at this instant: claim in time for it, if that is sooner than planned."""
        claim_at = ready_at - CLAIM_AHEAD
        if self._claim_at is None or claim_at < self._claim_at:
            self._claim_at = claim_at
            self.signal.set()

    async def run(self) -> None:
        """Start what is held when its time comes, claim when there is something to claim, sleep in between."""
        while True:
            now = self._clock.now()
            self.start_claimed(now)
            if self._admission.is_unsettled:
                await self.admit()
            if self._claim_at is not None and self._claim_at <= now:
                await self.claim(CLAIM_AHEAD)
                continue
            await self._clock.wait(self.signal, self._wake_at())

    async def claim(self, ahead: Micros = 0) -> int:
        """Ask the store for work once; answers how many runs it gave that may start."""
        request = self.request(ahead) if self._end_fault is None else None
        if request is None:
            # No room, closed, fenced or held back: whoever ends that asks next. A claim under way may have looked too
            # early.
            self._claim_at = None
            self._ask_again = self._is_claiming
            return 0
        try:
            failpoints.reach("dispatcher.claim")
            claimed = await self._quarantine.attempt(lambda: self._runs.claim_runs(request))
            failpoints.reach("dispatcher.claimed")
        except BaseException as error:
            self.release()
            if isinstance(error, StoreError):
                self._claim_fault = str(error)
            raise
        held = len(self._admission)
        self.accept(claimed)
        return len(claimed.runs) - (len(self._admission) - held)

    async def admit(self) -> int:
        """Settle what becomes of runs of full sessions; answers how many of them may start."""
        count = 0
        while self._admission.is_unsettled:
            allowed, gone = await self._admission.settle()
            for loaded in allowed:
                heapq.heappush(self._claimed_ahead, (loaded.claimed.ready_at, loaded.claimed.id, loaded))
            count += len(allowed)
            self.start_claimed(self._clock.now())
            if gone:
                self.wake()  # they have left their slots
        return count

    def request(self, ahead: Micros = CLAIM_AHEAD) -> Claim | None:
        """A claim for the room there is, or None. Whoever takes it must `accept` or `release` it."""
        room = self._slots - (self._runner.running - self._runner.waiting) - self.claimed_ahead
        if not self.is_open or self._is_claiming or room <= 0 or not self._may_start():
            return None
        self._is_claiming = True
        self.claims_begun += 1
        self._unclaimed.clear()
        self._claim_at = None
        now = self._asked_at = self._clock.now()
        return Claim(self.node, now, now + ahead, room, self._tasks, self._tasks_json)

    def release(self) -> None:
        """A requested claim was not carried out."""
        self._is_claiming = False
        self.claims_ended += 1
        self._cancelled.clear()
        self._unclaimed.set()
        self.wake()

    def hold_back(self, fault: str) -> None:
        """The ends of what ran could not be written: claim nothing but together with them."""
        self._end_fault = fault

    def go_on(self) -> None:
        """They are written."""
        if self._end_fault is not None:
            self._end_fault = None
            self.wake()

    @property
    def paused(self) -> str | None:
        """Why nothing is claimed: the database takes neither ends nor claims. Any thread may ask."""
        return self._end_fault or (self._claim_fault if self.is_open else None)

    def accept(self, claimed: Claimed) -> None:
        """Start or hold what a claim got, and note when the next one is worth it. Once closed, all goes back.

        What comes after the lease may have run out is held until a beat says whose it is.
        """
        self._is_claiming, self._claim_fault = False, None
        self.claims_ended += 1
        self._unclaimed.set()
        now = self._clock.now()
        may_start = not claimed.runs or self._may_start()
        cancelled, self._cancelled = self._cancelled, {}
        full = self._admission.look_at_sessions(claimed.runs)
        received = self._trace(claimed.runs) if claimed.runs else None
        late: list[Micros] = []
        for run in claimed.runs:
            if run.id in cancelled:
                self._runner.refuse(run, ended(cancelled[run.id]))
                continue
            if not self.is_open:  # others shall have it; it may even be what a force just put back
                self._runner.refuse(run, Outcome(OutcomeKind.PUT_OFF))
                continue
            loaded = self._runner.load(run)
            loaded.received = received
            if full and run.session in full:
                self._admission.hold(loaded)
            elif run.ready_at <= now and may_start:
                late.append(now - run.ready_at)
                self._runner.start(loaded)
            else:
                heapq.heappush(self._claimed_ahead, (run.ready_at, run.id, loaded))
        self._statistics.started(late)
        self._announcer.started(claimed.runs)
        self._announcer.unstarted(claimed.expired)
        if self._ask_again:
            self._ask_again = False
            self.wake()
        self._next_ready_at = claimed.next_ready_at
        if claimed.next_ready_at is not None:
            self.expect(claimed.next_ready_at)
        if claimed.crowded:
            self.expect(now + LOOK_AGAIN)
        if self._claimed_ahead or self._admission.is_unsettled:
            self.signal.set()

    def _trace(self, runs: Sequence[ClaimedRun]) -> Link | None:
        """The span of a claim that got these, if somebody traces; the runner is told whether."""
        self._runner.tracer = tracer = find_tracer()
        return None if tracer is None else tracer.claim(runs, self._asked_at, self.node)

    def start_claimed(self, now: Micros) -> int:
        """Start what was claimed ahead and is ready now; answers how many runs."""
        is_due = bool(self._claimed_ahead) and self._claimed_ahead[0][0] <= now
        self._is_fenced = is_due and not self._may_start()
        if self._is_fenced:
            return 0
        started: list[ClaimedRun] = []
        while self._claimed_ahead and self._claimed_ahead[0][0] <= now:
            _, _, loaded = heapq.heappop(self._claimed_ahead)
            self._runner.start(loaded)
            started.append(loaded.claimed)
        if started:
            self._statistics.started(now - run.ready_at for run in started)
            self._announcer.started(started)
        return len(started)

    @property
    def next_start_at(self) -> Micros | None:
        """When the next queued run is ready, as far as the last claim saw."""
        ahead = self._claimed_ahead[0][0] if self._claimed_ahead else None
        return min((at for at in (ahead, self._next_ready_at) if at is not None), default=None)

    async def rest(self) -> None:
        """Return when no claim is under way, here or in the recorder, and the store is asked about none."""
        while self._is_claiming:
            await self._unclaimed.wait()
        await self._admission.rest()

    async def close(self, until: float | None = None) -> list[ClaimedRun]:
        """Claim no more; answers what was held and never started. `until` is an instant of the loop."""
        self.is_open = False
        # Given up now, a claim would leave behind runs that are claimed and that nobody executes. But a database that
        # is silent must not take the time in which the finishes are to be written.
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self.rest()
        ahead = [loaded.claimed for _, _, loaded in self._claimed_ahead]
        self._claimed_ahead.clear()
        return ahead + self._admission.take_all()

    def cancel_claimed(self, id: RunId, ending: Ending) -> None:
        """End a run that was claimed ahead and has not started."""
        for entry in self._claimed_ahead:
            if entry[1] == id:
                self._claimed_ahead.remove(entry)
                heapq.heapify(self._claimed_ahead)
                self._runner.refuse(entry[2].claimed, ended(ending))
                return
        if not self._admission.cancel(id, ending) and self._is_claiming:
            self._cancelled[id] = ending

    def forget_claimed(self) -> int:
        """Others own what was held: start none of it."""
        count = self.claimed_ahead
        self._claimed_ahead.clear()
        self._admission.take_all()
        return count

    def has(self, id: RunId) -> bool:
        """Whether this run is claimed and has not started."""
        return self._admission.has(id) or any(entry[1] == id for entry in self._claimed_ahead)

    @property
    def claimed_ahead(self) -> int:
        """How many runs are claimed and have not started."""
        return len(self._claimed_ahead) + len(self._admission)

    def _wake_at(self) -> Micros | None:
        times = [self._claimed_ahead[0][0]] if self._claimed_ahead and not self._is_fenced else []
        if self._claim_at is not None:
            times.append(self._claim_at)
        return min(times, default=None)
