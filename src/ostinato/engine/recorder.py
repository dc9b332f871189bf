"""Step six of a fire: finishes go into a buffer that one recorder drains, many in one transaction.

It claims new work in the same transaction (dispatcher.request / accept). A batch that the store could not take stays
in the buffer, so nothing that ran is forgotten, and until it is written nothing else is claimed. What running work
reports goes out here too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ostinato import failpoints
from ostinato.announcer import Announcer
from ostinato.clock import Clock, Signal
from ostinato.engine.budgets import BudgetKeeper
from ostinato.engine.dispatcher import Dispatcher
from ostinato.engine.statistics import Statistics
from ostinato.errors import StoreUnavailable
from ostinato.execution.runner import Runner
from ostinato.execution.throttle import Throttle
from ostinato.logs import get_logger, one_line
from ostinato.models.finishes import unstorable
from ostinato.models.ids import RunId
from ostinato.models.incident import NO_INTERESTS, Interests
from ostinato.models.run import Finish, Report
from ostinato.stores.base import Finished, RunStore

__all__ = ["Recorder"]

log = get_logger("ostinato.engine")

REPORT_SECONDS = 0.5
BATCH = 500


class Recorder:
    """Writes what became of runs."""

    def __init__(
        self,
        runs: RunStore,
        throttle: Throttle,
        budgets: BudgetKeeper,
        clock: Clock,
        statistics: Statistics | None = None,
        announcer: Announcer | None = None,
        interests: Callable[[], Interests] = lambda: NO_INTERESTS,
    ) -> None:
        self._runs = runs
        self._interests = interests
        self._throttle = throttle
        self._budgets = budgets
        self._clock = clock
        self._statistics = statistics or Statistics()
        self._announcer = announcer or Announcer()
        self._buffer: list[Finish] = []
        self._signal = Signal()
        self._report_signal = Signal()
        self._reports: list[Report] = []
        """What was said and could not be written yet."""
        self._late_ends: list[tuple[RunId, int]] = []
        """Code that was given up and has ended, of which the database is not told yet."""
        self._turn = asyncio.Lock()
        """One write at a time: a batch stays in the buffer until it is written, and behind a finish no report is."""
        self.ends = 0
        """How many finishes came in."""
        self.lost_runs = 0
        """How many finishes came too late: their token no longer held."""

    def connect(self, runner: Runner, dispatcher: Dispatcher) -> None:
        """Name the neighbours; called once, by node.py."""
        self._runner = runner
        self._dispatcher = dispatcher
        self._loop = asyncio.get_running_loop()
        runner.on_report = self._reported
        runner.on_late_end = self._ended_late

    def _ended_late(self, id: RunId, token: int) -> None:
        """What was given up has ended: its finish is written, or in the buffer."""
        self._late_ends.append((id, token))
        self._signal.set()

    def _reported(self) -> None:
        """Running work, maybe on another thread, has something to say."""
        self._loop.call_soon_threadsafe(self._report_signal.set)

    def add(self, finish: Finish) -> None:
        """Take a finish; it is written soon."""
        if self._reports:
            self._take_back(finish)
        self._buffer.append(finish)
        self.ends += 1
        self._signal.set()

    def _take_back(self, finish: Finish) -> None:
        """Output that could not be reported while the run was under way goes with its finish."""
        early = [part for report in self._reports if report.id == finish.id for part in report.output]
        self._reports = [report for report in self._reports if report.id != finish.id]
        finish.output = [*(part for part in early if not part.is_tail), *finish.output]

    @property
    def pending(self) -> int:
        """How many finishes are not yet written."""
        return len(self._buffer)

    def has(self, id: RunId) -> bool:
        """Whether a finish of this run is not yet written."""
        return any(finish.id == id for finish in self._buffer)

    @property
    def unwritten(self) -> Sequence[Finish]:
        """The finishes that the store has not taken."""
        return self._buffer

    def spooled(self) -> None:
        """What was unwritten is kept elsewhere: nothing of it is to be done here any more."""
        kept, self._buffer = self._buffer, []
        _let_go(kept)

    async def run(self) -> None:
        """Write whenever there is something to write."""
        if self._buffer or self._late_ends:
            self._signal.set()
        while True:
            await self._signal.wait()
            while self._buffer:
                await self.flush()
            await self.tell_late_ends()

    async def tell_late_ends(self) -> None:
        """Free the names that ended code occupied; after the finishes, which say that they are occupied."""
        ended = tuple(self._late_ends)
        if ended and not self._buffer:
            await self._runs.forget_given_up(ended)
            del self._late_ends[: len(ended)]
            self._dispatcher.wake()

    async def flush(self, *, claim: bool = True) -> None:
        """Write up to BATCH finishes in one transaction, and claim as much as they made room for."""
        async with self._turn:
            batch = self._buffer[:BATCH]
            if not batch:
                return
            for finish in batch:
                if finish.session is not None and (is_full := self._throttle.look(finish.session)) is not None:
                    finish.throttled = is_full
            _mark(batch, self._interests())
            request = self._dispatcher.request() if claim else None
            with self._announcer.ends_first(), self._holding_claims_back():
                try:
                    failpoints.reach("recorder.finish")
                    finished = await self._runs.finish_runs(batch, request, self._clock.now())
                    failpoints.reach("recorder.finished")
                except BaseException as error:
                    if request is not None:
                        self._dispatcher.release()
                    if isinstance(error, StoreUnavailable) or not isinstance(error, Exception):
                        raise
                    await self._write_singly(batch)
                    return
                del self._buffer[: len(batch)]
                written = finished.as_written(batch)
                self._announcer.ended(written, finished)
        if request is not None:
            self._dispatcher.accept(finished.claimed)
        elif claim:
            # Another claim was under way, which did not see what these ends make room for, or whose turn it is now.
            self._dispatcher.wake()
        self._written(written, finished)

    @contextmanager
    def _holding_claims_back(self) -> Iterator[None]:
        """While the database does not take these ends, it would not take those of what is claimed now either."""
        try:
            yield
        except StoreUnavailable as error:
            self._dispatcher.hold_back(str(error))
            raise
        self._dispatcher.go_on()

    def _written(self, batch: Sequence[Finish], finished: Finished) -> None:
        """Say what became of a batch, to whom it concerns."""
        self._statistics.recorded(batch, finished.lost)
        for id in finished.lost:
            log.warning("run %s was finished here, but its token no longer held: nothing was written", id)
        self.lost_runs += len(finished.lost)
        if finished.lost:
            # Their schedule may have been removed while they ran, and their code counts as given up since.
            ended = [(one.id, one.token) for one in batch if one.id in finished.lost and not one.given_up]
            self._late_ends += ended
        _let_go(batch)
        self._budgets.settled(finish.schedule for finish in batch if finish.cost is not None and finish.schedule)

    async def _write_singly(self, batch: Sequence[Finish]) -> None:
        """One of them cannot be stored: find it, and record that instead, so that it holds up nobody."""
        for finish in batch:
            written = finish
            try:
                finished = await self._runs.finish_runs([finish], None, self._clock.now())
            except StoreUnavailable:
                raise
            except Exception as error:
                log.exception("the outcome of run %s could not be stored", finish.id)
                written = unstorable(finish, one_line(error))
                finished = await self._runs.finish_runs([written], None, self._clock.now())
            self._buffer.remove(finish)
            ended = finished.as_written([written])
            self._announcer.ended(ended, finished)
            self._written(ended, finished)
        self._dispatcher.wake()

    async def report(self) -> None:
        """Write what running work says, at most twice a second."""
        if self._reports:
            self._report_signal.set()
        while True:
            await self._report_signal.wait()
            self._reports = _joined(self._reports, self._runner.take_reports())
            if self._reports:
                await self._write_reports()
            # Real time, whatever the clock says: what is spared here is the database.
            await asyncio.sleep(REPORT_SECONDS)

    async def _write_reports(self) -> None:
        """Write what was said so far. A run that ends meanwhile must not take it along, or it would be there twice."""
        async with self._turn:
            reports, self._reports = self._reports, []
            try:
                await self._runs.report_runs(reports)
            except BaseException:
                self._reports = _joined(reports, self._reports)
                for finish in self._buffer:
                    self._take_back(finish)
                raise


def _mark(batch: Sequence[Finish], interests: Interests) -> None:
    """Say which of these ends somebody wants to be told of, or whose success closes an incident."""
    if None in interests.each_run_of:
        for finish in batch:
            finish.tells = True
    elif interests.open or interests.each_run_of:
        for finish in batch:
            if finish.told_as in interests.open or finish.project in interests.each_run_of:
                finish.tells = True


def _let_go(finishes: Sequence[Finish]) -> None:
    """What was kept until these were written can go."""
    for finish in finishes:
        if finish.recorded is not None:
            try:
                finish.recorded()
            except Exception:
                log.exception("what run %s left behind could not be removed", finish.id)


def _joined(before: Sequence[Report], after: Sequence[Report]) -> list[Report]:
    """Reports that wait to be written, one for each run: of what replaces another, only the last is of any use."""
    joined = {(report.id, report.token): report for report in before}
    for report in after:
        known = joined.get((report.id, report.token))
        if known is not None:
            is_replaced = any(part.is_tail for part in report.output)
            kept = [part for part in known.output if not (part.is_tail and is_replaced)]
            report = replace(
                report,
                progress=report.progress or known.progress,
                totals=report.totals or known.totals,
                output=[*kept, *report.output],
            )
        joined[report.id, report.token] = report
    return list(joined.values())
