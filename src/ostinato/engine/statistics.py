"""What a node counts of its own work since its start, for metrics: cheap enough to be counted for every run.

The dispatcher, the recorder, the rescuer, the ticker and the notifier count; every beat of the lease carries it to the
others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import RunId
from ostinato.models.run import Finish, NewRun
from ostinato.models.states import Cause, RunState
from ostinato.models.work_kinds import counted_as

__all__ = ["BATCH_BOUNDS", "DURATION_BOUNDS", "LATENESS_BOUNDS", "MOST_NAMES", "OTHER", "Histogram", "Statistics"]

MOST_NAMES = 500
OTHER = "other"
"""Under which the rest is counted, so that a name made up for each run does not fill the memory."""

# Upper bounds of the buckets, in microseconds and in runs.
DURATION_BOUNDS: Sequence[int] = tuple(
    round(seconds * SECOND)
    for seconds in (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600)
)  # fmt: skip
LATENESS_BOUNDS: Sequence[int] = tuple(
    round(seconds * SECOND) for seconds in (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 60, 300)
)
BATCH_BOUNDS: Sequence[int] = (1, 2, 5, 10, 20, 50, 100, 200, 500)


class Histogram:
    """How many values were at most each bound, one more for what is above all, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[int]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0

    def add(self, values: Iterable[int]) -> None:
        """Count these; what the clock made negative counts as nothing."""
        bounds, counts = self.bounds, self.counts
        for value in values:
            counts[bisect_left(bounds, value)] += 1
            if value > 0:
                self.sum += value

    def shape(self, unit: int = 1) -> dict[str, Any]:
        """As JSON, in this unit: each bucket for itself, and none behind the last that holds something."""
        used = max((place for place, count in enumerate(self.counts, start=1) if count), default=0)
        return {"counts": self.counts[:used], "sum": self.sum / unit}


class _Name:
    """What is counted for one task, schedule or kind of work."""

    __slots__ = ("durations", "skipped", "states", "with_errors")

    def __init__(self) -> None:
        self.states: dict[RunState, int] = {}
        self.skipped: dict[Cause, int] = {}
        self.with_errors = 0
        self.durations = Histogram(DURATION_BOUNDS)


class Statistics:
    """The counters of one node."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count from nothing: the node starts, or goes on under another name."""
        self._names: dict[str, _Name] = {}
        self._lateness = Histogram(LATENESS_BOUNDS)
        self._batches = Histogram(BATCH_BOUNDS)
        self._told: dict[str, dict[str, int]] = {}

    def told(self, channel: str, outcome: str, count: int) -> None:
        """So many deliveries for a channel were sent, will be tried again, failed for good, or were dropped."""
        if channel not in self._told and len(self._told) >= MOST_NAMES:
            channel = OTHER
        outcomes = self._told.setdefault(channel, {})
        outcomes[outcome] = outcomes.get(outcome, 0) + count

    def started(self, late: Iterable[Micros]) -> None:
        """Runs started, each so long after it was ready."""
        self._lateness.add(late)

    def recorded(self, batch: Sequence[Finish], lost: Sequence[RunId] = ()) -> None:
        """A batch of finishes was written, but for those whose token no longer held."""
        self._batches.add((len(batch),))
        self.ended(batch, lost)

    def ended(self, finishes: Iterable[Finish], lost: Sequence[RunId] = ()) -> None:
        """Count what ended; what goes back to the queue has not."""
        alike: dict[tuple[str, RunState, Cause | None], list[Micros | None]] = {}
        for finish in finishes:
            if finish.state is not RunState.QUEUED and not (lost and finish.id in lost):
                took = None if finish.started_at is None else finish.finished_at - finish.started_at
                alike.setdefault((finish.name, finish.state, finish.cause), []).append(took)
        for (name, state, cause), durations in alike.items():
            counted = self._name(name)
            counted.states[state] = counted.states.get(state, 0) + len(durations)
            if state is RunState.SKIPPED and cause is not None:
                counted.skipped[cause] = counted.skipped.get(cause, 0) + len(durations)
            else:
                counted.durations.add(took for took in durations if took is not None)
            if cause is Cause.ERRORS:
                counted.with_errors += len(durations)

    def left_out(self, schedule: str, runs: Iterable[NewRun]) -> None:
        """Count due times of a schedule that nothing was executed for."""
        for run in runs:
            if run.state is not RunState.QUEUED and run.cause is not None:
                name = self._name(counted_as(run.task, schedule, run.kind))
                name.states[run.state] = name.states.get(run.state, 0) + 1
                name.skipped[run.cause] = name.skipped.get(run.cause, 0) + run.count

    def _name(self, name: str) -> _Name:
        if name not in self._names and len(self._names) >= MOST_NAMES:
            name = OTHER
        return self._names.setdefault(name, _Name())

    def shape(self) -> dict[str, Any]:
        """As JSON, for the beat and for metrics. Any thread may ask, while others are counted."""
        names = tuple(self._names.items())
        return {
            "bounds": {
                "durations": [bound / SECOND for bound in DURATION_BOUNDS],
                "lateness": [bound / SECOND for bound in LATENESS_BOUNDS],
                "batches": list(BATCH_BOUNDS),
            },
            "runs": {name: dict(counted.states) for name, counted in names},
            "skipped": {name: dict(counted.skipped) for name, counted in names if counted.skipped},
            "with_errors": {name: counted.with_errors for name, counted in names if counted.with_errors},
            "durations": {
                name: counted.durations.shape(SECOND) for name, counted in names if any(counted.durations.counts)
            },
            "lateness": self._lateness.shape(SECOND),
            "batches": self._batches.shape(),
            "told": {channel: dict(outcomes) for channel, outcomes in tuple(self._told.items())},
        }
