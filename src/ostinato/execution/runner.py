"""One run, top to bottom: load → prepare → execute → outcome → decide → record.

`load` and `start` are the first half, on the way in; `_complete` is the second, when the executor is done. In between
nothing waits: the cost of a run is a call, not a task and a future. Neighbours: the dispatcher above hands in claimed
runs, the recorder takes the finishes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ostinato import failpoints
from ostinato.clock import SECOND, Clock, Micros, Timer, micros_of
from ostinato.config import Settings
from ostinato.durations import duration_text
from ostinato.errors import NotFound, NotLoadable
from ostinato.execution.context import RunContext, SoftLimit
from ostinato.execution.executors.base import LOOP_ENDED, Call, Executor, ExecutorHost
from ostinato.execution.executors.function import AsyncFunctions, ThreadFunctions
from ostinato.execution.executors.of_kinds import load_functions, make_executors
from ostinato.execution.executors.process import ProcessFunctions
from ostinato.execution.finishing import end_span, make_finish
from ostinato.execution.nested import nested_runs
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind, raised
from ostinato.execution.output import CappedText
from ostinato.execution.output_capture import output_capture
from ostinato.execution.ping_urls import PingUrls
from ostinato.execution.preparation import Preparation, UpstreamsOf, needs_preparation
from ostinato.execution.registry import Registry
from ostinato.execution.resources import is_exhausted, starved
from ostinato.execution.retry import decide, undecided
from ostinato.execution.silence import SilenceWatch
from ostinato.execution.stops import Stop, disarm, halt, obeyed, softened, stopped_outcome
from ostinato.execution.threads import WorkerThreads
from ostinato.logs import get_logger, one_line
from ostinato.models.ids import RunId
from ostinato.models.policy import DEFAULT as DEFAULT_POLICY
from ostinato.models.policy import OnLostLease, Policy, load_policy
from ostinato.models.run import CANCELLED, ClaimedRun, Ending, Finish, Report
from ostinato.models.states import Cause
from ostinato.models.work import Function, read_work
from ostinato.models.work_kinds import is_added
from ostinato.stores.base import ProjectStore

if TYPE_CHECKING:
    from opentelemetry.trace import Link

    from ostinato.tracing import Tracer

__all__ = ["ActiveRun", "Runner"]

log = get_logger("ostinato.execution")


class ActiveRun:
    """A run under way on this node."""

    __slots__ = (
        "call",
        "claimed",
        "context",
        "ending",
        "executor",
        "policy",
        "preparing",
        "received",
        "refusal",
        "runner",
        "silence",
        "soft_timer",
        "stop",
        "timer",
    )

    def __init__(self, runner: Runner, claimed: ClaimedRun, policy: Policy, context: RunContext) -> None:
        self.runner = runner
        self.claimed = claimed
        self.policy = policy
        self.context = context
        self.call: Call | None = None
        self.refusal: Outcome | None = None
        """Why there is nothing to call."""
        self.preparing: asyncio.Task[Outcome | None] | None = None
        """What comes before the call, while it is under way."""
        self.executor: Executor | None = None
        self.timer: Timer | None = None
        self.soft_timer: Timer | None = None
        self.silence: Timer | None = None
        """Watches whether it says anything, if its policy asks for that."""
        self.stop: Stop | None = None
        self.ending = CANCELLED
        """Why it was told to stop, if it was."""
        self.received: Link | None = None
        """To the span of the claim that got it, if there is one."""

    def done(self, outcome: Outcome) -> None:
        """Its call has ended."""
        self.runner.complete(self, outcome)


class Runner:
    """Executes claimed runs and hands each finish to `record`."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        record: Callable[[Finish], None],
        projects: ProjectStore,
        upstreams_of: UpstreamsOf,
        settings: Settings,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._record = record
        self._make_output = partial(CappedText, settings.output_cap, clock.now)
        self._preparation = Preparation(registry, projects, upstreams_of, settings, clock)
        self._active: dict[RunId, ActiveRun] = {}
        self._dirty: set[RunContext] = set()
        self._zone = settings.tz
        self._changed = self._mark_dirty  # once, and not a new method object for each run
        self.threads = WorkerThreads()
        tuning = settings.tuning
        self._stop_seconds = tuning.function_stop_seconds
        self._nested_seconds = tuning.command_kill_seconds + 5
        """How long what a run executes may take to end, before the run itself does."""
        self._async = AsyncFunctions(self._stop_seconds, settings.max_result)
        self._threaded = ThreadFunctions(self.threads, self._stop_seconds, settings.max_result)
        self._process = ProcessFunctions(tuning, settings.max_result)
        self._executors = make_executors(ExecutorHost(settings, self.threads, clock.now))
        self._added = load_functions()
        """The functions of packages, by the kind of work that they execute."""
        self.ping_urls = PingUrls(settings, self.threads)
        self._starved = 0
        self._starved_told: Micros | None = None
        self._given_up: set[ActiveRun] = set()
        """Recorded as ended, while their code goes on here."""
        self._is_draining = False
        self.tracer: Tracer | None = None
        """Makes the spans of runs; whoever hands in claimed runs looks whether there is one, once for a batch."""
        self.idle = asyncio.Event()
        self.idle.set()
        self.on_report: Callable[[], None] = lambda: None
        """Called, maybe from a worker thread, when there is something for take_reports."""
        self.on_wait: Callable[[], None] = lambda: None
        """Called, maybe from another loop, when a run begins to wait for another one."""
        self._ever_waited = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_late_end: Callable[[RunId, int], None] = lambda _, __: None
        """Called when what was given up has ended after all."""
        self.may_begin: Callable[[], Awaitable[None]] = _at_once
        """Awaited when the preparation of a run is through: returns when its work may begin."""

    @property
    def served(self) -> list[str]:
        """What this node can execute, by the names that runs need: tasks, and kinds of work that packages add."""
        return sorted([*self._registry.tasks, *(definition.name for definition in self._added.values())])

    @property
    def running(self) -> int:
        """How many runs are under way."""
        return len(self._active)

    @property
    def waiting(self) -> int:
        """How many of them wait for other runs, and need no slot of this node meanwhile."""
        return sum(active.context.waits > 0 for active in self._active.values()) if self._ever_waited else 0

    def _waits(self) -> None:
        """Called by a run of ours, which may wait on the loop of another app."""
        self._ever_waited = True
        with suppress(RuntimeError):  # our loop was closed: nothing runs there any more
            (asyncio.get_running_loop() if self._loop is None else self._loop).call_soon_threadsafe(self.on_wait)

    @property
    def under_way(self) -> list[str]:
        """The same in words, the oldest first; from any thread."""
        claimed = [active.claimed for active in list(self._active.values())]
        return [f"run {run.id} of {run.schedule or run.task or run.kind!r}" for run in claimed]

    def has(self, id: RunId) -> bool:
        """Whether this run is under way here."""
        return id in self._active

    def set_draining(self, draining: bool) -> None:
        """Let running work see that its node drains, or no longer does."""
        self._is_draining = draining
        for active in self._active.values():
            active.context.set_draining(draining)

    def load(self, claimed: ClaimedRun) -> ActiveRun:
        """The first step, which can be taken ahead of time: what to call, and how to treat it."""
        if claimed.zone is None:
            claimed.zone = self._zone
        context = RunContext(claimed, self._changed, self._make_output)
        context.on_wait = self._waits
        if self._is_draining:
            context.set_draining(True)
        active = ActiveRun(self, claimed, DEFAULT_POLICY, context)
        try:
            active.policy = load_policy(claimed.policy)
            work = read_work(claimed.work, claimed.kind)
            definition = self._registry.task(work.task) if isinstance(work, Function) else self._added.get(work.kind)
            if definition is None and work.kind not in self._executors:
                raise NotLoadable(f"its package cannot execute {work.kind} work here: see the log of this node")
        except (NotLoadable, NotFound) as error:
            cause = Cause.UNKNOWN_TASK if isinstance(error, NotFound) else Cause.NOT_LOADABLE
            # The package of an added kind may be another version on other nodes: its schedule does not break for it.
            blame = Blame.NODE if is_added(claimed.task) else None
            reason = f"this run cannot be executed: {error}"
            active.refusal = Outcome(OutcomeKind.ABORTED, reason, cause=cause, blame=blame)
        except Exception as error:  # the others of the same claim go on
            active.refusal = _not_started(error)
        else:
            active.call = Call(work, context, active.done, definition)
        return active

    def start(self, active: ActiveRun) -> None:
        """The rest of the first half: prepare, execute."""
        claimed = active.claimed
        if failpoints.ON:
            failpoints.reach("runner.start")
        claimed.started_at = self._clock.now()
        self._active[claimed.id] = active
        self.idle.clear()
        if self.tracer is not None:
            active.context.span = self.tracer.run(claimed, active.received)
        if active.call is None:
            assert active.refusal is not None
            self.complete(active, active.refusal)
        elif needs_preparation(claimed, active.policy, active.call.work):
            active.preparing = asyncio.get_running_loop().create_task(self._prepare(active, active.call))
            active.preparing.add_done_callback(lambda preparing: self._prepared(active, preparing))
        else:
            self._execute(active, active.call)

    def open(self) -> None:
        """From now on, what functions print is output of their runs."""
        self._loop = asyncio.get_running_loop()
        output_capture.open(self)

    def hush(self) -> None:
        """Until the close, what functions print is nothing else: whoever asks shows that output himself."""
        output_capture.passes_on = False

    def close(self) -> None:
        """Nothing is started here any more."""
        self.threads.stop()
        output_capture.close(self)

    def refuse(self, claimed: ClaimedRun, outcome: Outcome) -> None:
        """Record a claimed run that is not to be started at all."""
        self._record(decide(claimed, DEFAULT_POLICY, outcome, self._clock.now(), random.random))

    def cancel(self, id: RunId, ending: Ending) -> bool:
        """Tell a run to stop; False if it is not under way here."""
        active = self._active.get(id)
        if active is None:
            return False
        self._stop(active, Stop.CANCELLED, ending)
        return True

    def cut_off(self, *, at_once: bool = False) -> None:
        """The node's grace is over: what runs has ended, and is tried again elsewhere if its retry allows it."""
        how = "its node was stopped by force while it ran" if at_once else "its node was stopped while it ran"
        for active in list(self._active.values()):
            self._stop(active, Stop.CUT_OFF, Ending(Cause.CUT_OFF, how))
            if at_once:
                self._end_now(active)

    def stop_unleased(self, reason: str) -> int:
        """The node cannot renew its lease: stop what may not go on without one; answers how many runs.

        Each is a failed attempt, or none if its work had not begun; written if the lease is renewed before others
        declare the node lost.
        """
        stopped = [
            active
            for active in self._active.values()
            if active.policy.on_lost_lease is OnLostLease.STOP and active.stop is None
        ]
        for active in stopped:
            self._stop(active, Stop.UNLEASED, Ending(Cause.NODE_LOST, reason))
        return len(stopped)

    def abandon(self) -> list[RunId]:
        """The node lost its lease: others own its runs now. Stop them all and record nothing."""
        lost = list(self._active.values())
        self._active.clear()
        self._dirty.clear()
        self.idle.set()
        for active in lost:
            disarm(active)
            halt(active, now=True)
            if active.context.span is not None:
                active.context.span.abandon("its node lost its lease: others took over")
        return [active.claimed.id for active in lost]

    def take_reports(self) -> list[Report]:
        """What running work has said since the last call."""
        dirty, self._dirty = self._dirty, set()
        reports = []
        for context in dirty:
            if context.id in self._active:
                try:
                    reports.append(Report(context.id, context.claimed.token, *context.take_report()))
                except Exception:  # the others have handed theirs out
                    log.exception("what run %s reported could not be read", context.id)
        return reports

    def health(self) -> dict[str, int]:
        """Runs under way, given up and busy in threads, and starts that there was no room for."""
        return {
            "running": self.running,
            "given_up": len(self._given_up),
            "threads_busy": self.threads.busy,
            "starved": self._starved,
        }

    def _mark_dirty(self, context: RunContext) -> None:
        self._dirty.add(context)
        self.on_report()

    async def _prepare(self, active: ActiveRun, call: Call) -> Outcome | None:
        refusal = await self._preparation.prepare(active.claimed, active.policy, call)
        if refusal is None:
            await self.may_begin()
        return refusal

    def _prepared(self, active: ActiveRun, preparing: asyncio.Task[Outcome | None]) -> None:
        """What comes before is through, or was cancelled: execute, or record why not."""
        active.preparing = None
        error = None if preparing.cancelled() else preparing.exception()
        if active.call is None or self._active.get(active.claimed.id) is not active:
            return  # nobody waits for it any more
        if active.stop is not None:
            self.complete(active, stopped_outcome(active, ended=True))
        elif preparing.cancelled() and preparing.cancelling():
            self.complete(active, LOOP_ENDED)
        elif preparing.cancelled() or error is not None:
            self.complete(active, _not_started(error or asyncio.CancelledError("its preparation was cancelled")))
        elif (refusal := preparing.result()) is not None:
            self.complete(active, refusal)
        else:
            self._execute(active, active.call)

    def _execute(self, active: ActiveRun, call: Call) -> None:
        try:
            active.executor = self._pick(call)
            if active.policy.timeout is not None:
                ends_at = self._clock.now() + micros_of(active.policy.timeout)
                active.timer = self._clock.call_at(ends_at, lambda: self._time_out(active))
            if (soft := active.policy.soft_timeout) is not None:
                active.context.soft_limit = SoftLimit(f"its soft timeout of {duration_text(soft)} is over")
                active.soft_timer = self._clock.call_at(
                    self._clock.now() + micros_of(soft), lambda: self._ask_to_end(active)
                )
            if (limit := active.policy.silent) is not None:
                active.silence = SilenceWatch(active.context, limit, self._clock, lambda: self._fall_silent(active))
            if active.policy.ping_url is not None:
                self.ping_urls.started(active.claimed.id, active.policy.ping_url)
            active.executor.start(call)
        except Exception as error:  # no more threads, say: this attempt has failed, and the others start
            self.complete(active, _not_started(error))

    def _pick(self, call: Call) -> Executor:
        definition = call.definition
        if definition is None:
            return self._executors[call.work.kind]
        if definition.isolation == "process":
            return self._process
        return self._async if definition.is_async else self._threaded

    def _time_out(self, active: ActiveRun) -> None:
        assert active.policy.timeout is not None
        reason = f"timed out after {duration_text(active.policy.timeout)}"
        self._stop(active, Stop.TIMED_OUT, Ending(Cause.TIMED_OUT, reason))

    def _ask_to_end(self, active: ActiveRun) -> None:
        """Its soft timeout is over: its function may end by itself, before anything ends it."""
        limit = active.context.soft_limit
        if active.stop is None and limit is not None:
            limit.is_over = True
            if limit.ask is None:
                active.context.see_cancel()
            else:
                limit.ask()

    def _fall_silent(self, active: ActiveRun) -> None:
        assert active.policy.silent is not None
        claimed, reason = active.claimed, f"said nothing for {duration_text(active.policy.silent)}"
        active.context.remark(f"this attempt {reason}: it counts as stuck, and is ended")
        name = claimed.schedule or claimed.task or claimed.kind
        log.warning("run %s of %r %s: it counts as stuck, and is ended", claimed.id, name, reason)
        self._stop(active, Stop.SILENT, Ending(Cause.SILENT, reason))

    def _stop(self, active: ActiveRun, stop: Stop, ending: Ending) -> None:
        """Ask the work to end; record without it if it does not end soon."""
        if active.stop is not None:
            return
        active.stop, active.ending = stop, ending
        disarm(active)
        halt(active)
        grace = self._stop_seconds if active.executor is None else active.executor.stop_seconds
        if active.context in nested_runs.outer:
            grace += self._nested_seconds
        # In real time, whatever the clock says: it is this process that waits.
        active.timer = asyncio.get_running_loop().call_later(grace, self._give_up, active)

    def _end_now(self, active: ActiveRun) -> None:
        """Record it at once; but what can be killed when it is dead, for others start it anew then."""
        halt(active, now=True)
        if active.executor is None or not active.executor.kill_seconds:
            self.complete(active, stopped_outcome(active, ended=True), given_up=True)
            return
        disarm(active)
        active.timer = asyncio.get_running_loop().call_later(active.executor.kill_seconds, self._give_up, active)

    def _give_up(self, active: ActiveRun) -> None:
        self.complete(active, stopped_outcome(active, ended=False), given_up=True)

    def complete(self, active: ActiveRun, outcome: Outcome, *, given_up: bool = False) -> None:
        """The second half: outcome, decide, record. A run that was given up completes only once.

        Whatever happens in here, the run ends: left out, it would be under way for ever.
        """
        claimed = active.claimed
        if failpoints.ON:
            failpoints.reach("runner.complete")
        if self._active.get(claimed.id) is not active:
            if active.stop is not None and outcome.recorded is not None:
                outcome.recorded()  # it was given up, and that is recorded
            if active in self._given_up:
                self._given_up.remove(active)
                self.on_late_end(claimed.id, claimed.token)
            return
        if nested_runs.outer and not given_up and nested_runs.hold(active.context, partial(active.done, outcome)):
            return  # it ends after what it executes
        del self._active[claimed.id]
        disarm(active)
        work = None if active.call is None else active.call.work
        recorded = outcome.recorded
        if outcome.kind is OutcomeKind.CUT_OFF and active.stop is None:  # by whoever ends the loop
            active.stop, active.ending = Stop.CUT_OFF, Ending(Cause.CUT_OFF, outcome.reason or "cut off")
        if active.stop is not None and not given_up and obeyed(active, outcome):
            said = outcome
            outcome = replace(stopped_outcome(active, ended=True), conversation=said.conversation, begun=said.begun)
        if active.stop is None:
            outcome = softened(active.context, outcome)
        active.call = None  # it holds the way back to `active`: without the circle, both are freed at once
        if outcome.blame is Blame.NODE and outcome.kind is OutcomeKind.PUT_OFF:
            self._tell_starved(claimed, outcome)
        try:
            finish = make_finish(claimed, active.policy, work, active.context, outcome, self._clock.now())
        except Exception as error:
            log.exception("the outcome of run %s could not be recorded", claimed.id)
            finish = undecided(claimed, error, self._clock.now())
        finish.recorded = recorded
        if active.context.span is not None:
            end_span(active.context.span, finish, outcome, active.context.mask)
        if given_up and active.executor is not None:
            self._given_up.add(active)
            finish.given_up = True
            if active.stop is not Stop.CUT_OFF:  # else it ends with its node
                name = claimed.schedule or claimed.task or claimed.kind
                log.warning("run %s of %r was told to stop and goes on: it is given up until it ends", claimed.id, name)
        if active.policy.ping_url is not None and active.executor is not None:
            self.ping_urls.ended(finish, active.policy.ping_url)
        self._record(finish)
        if not self._active:
            self.idle.set()

    def _tell_starved(self, claimed: ClaimedRun, outcome: Outcome) -> None:
        """Once a minute: where one start has no room, hundreds may not."""
        self._starved += 1
        now = self._clock.steady()
        if self._starved_told is None or now - self._starved_told >= 60 * SECOND:
            self._starved_told = now
            name = claimed.schedule or claimed.task or claimed.kind
            log.error("run %s of %r goes back to the queue: %s", claimed.id, name, outcome.reason)


async def _at_once() -> None:
    """Nothing to wait for."""


def _not_started(error: BaseException) -> Outcome:
    if is_exhausted(error):
        return starved(one_line(error))
    reason = f"it could not be started: {one_line(error)}"
    return Outcome(OutcomeKind.FAILED, reason, raised(error).error, cause=Cause.NOT_STARTED, begun=False)
