"""What running work sees of its run: who it is, and how to report progress, counters and lines of a log.

Work on any thread writes into its context; the recorder takes what is new from time to time.
"""

from __future__ import annotations

import contextvars
import math
import operator
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ostinato.clock import Micros, from_micros
from ostinato.errors import InvalidInput, NotRunning
from ostinato.execution.nested import nested_runs
from ostinato.execution.output import CappedText, storable
from ostinato.execution.secrets import NO_SECRETS
from ostinato.models.ids import RunId
from ostinato.models.output import OutputPart
from ostinato.models.run import USAGE, ClaimedRun, Progress
from ostinato.models.states import Trigger
from ostinato.models.upstream import Upstream, last_to_end
from ostinato.timing.zones import local_time
from ostinato.trace_context import own_trace
from ostinato.tracing import RunSpan, enter_trace

__all__ = [
    "DRAINING",
    "NOT_DRAINING",
    "SOFT_TIMEOUT",
    "RunContext",
    "SoftLimit",
    "checked_total",
    "current_context",
    "current_run",
    "enter",
    "finite",
]

DRAINING, NOT_DRAINING, SOFT_TIMEOUT = b"1", b"0", b"s"
"""What work in a process of its own is told of its node."""

current_context: contextvars.ContextVar[RunContext] = contextvars.ContextVar("ostinato_run")


def current_run() -> RunContext:
    """The run that the calling code is part of; raises NotRunning outside a run."""
    try:
        return current_context.get()
    except LookupError:
        raise NotRunning("current_run() works only inside a running task") from None


def enter(context: RunContext) -> None:
    """From here on, this task or thread is part of the run, and of its trace. In a context of its own: there is nothing
    to reset."""
    current_context.set(context)
    if context.span is not None:
        context.span.enter()
    elif context.trace is not None:
        enter_trace(context.trace)


def finite(what: str, value: Any) -> float:
    """A number as JSON can hold it, whole ones as whole; InvalidInput names what it was given for."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(f"{what} cannot be {value!r}", field=what, hint="give a finite number")
    return operator.index(value) if hasattr(value, "__index__") and abs(number) <= 2**53 else number


def checked_total(name: Any, value: Any) -> tuple[str, float]:
    """A total as it is kept; InvalidInput says what is wrong with it."""
    if not name or not isinstance(name, str):
        raise InvalidInput("a total needs a name", field="name")
    name = storable(name)
    return name, finite(f"total {name!r}", value)


def _used(totals: str) -> dict[str, float]:
    """What earlier attempts used up."""
    try:
        known = msgspec.json.decode(totals, type=dict[str, int | float])
        return {name: finite(name, known[name]) for name in USAGE if name in known}
    except (msgspec.DecodeError, RecursionError, InvalidInput):  # of a row that somebody wrote by hand
        return {}


class SoftLimit:
    """A soft timeout: `ask` asks the function to end. `is_over` from then on."""

    __slots__ = ("ask", "is_over", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_over = False
        self.ask: Callable[[], None] | None = None


class RunContext:
    """Given to the parameter annotated `RunContext`, or found by current_run()."""

    __slots__ = (
        "_cancelled",
        "_changed",
        "_claimed",
        "_draining",
        "_earlier",
        "_is_dirty",
        "_make_output",
        "_outer",
        "_output",
        "_progress",
        "_steady",
        "_totals",
        "gate",
        "heard_at",
        "mask",
        "on_drain",
        "on_wait",
        "saw_cancel",
        "soft_limit",
        "span",
        "spends",
        "waits",
    )

    has_own_stdout = False
    """Whether its work has a process of its own, of which all that is printed is the run's output."""

    def __init__(
        self,
        claimed: ClaimedRun,
        changed: Callable[[RunContext], None],
        make_output: Callable[[], CappedText] = CappedText,
    ) -> None:
        self._claimed = claimed
        self._changed = changed
        self._make_output = make_output
        self.gate: Any = None
        """What the gate before this run gave to it."""
        self.mask = NO_SECRETS
        """Hides the secrets of this run in whatever is shown of it."""
        self.span: RunSpan | None = None
        """Of this attempt, if this process makes spans."""
        self.spends = False
        """Whether the work has begun to cost money that it may never tell of."""
        self._progress: Progress | None = None
        self._totals: dict[str, float] | None = None
        """What this attempt has counted."""
        self._earlier = None if claimed.totals is None else _used(claimed.totals)
        self._is_dirty = False
        self._cancelled = False
        self._draining = False
        self.on_drain: Callable[[bool], None] | None = None
        """Told when its node begins to drain, or takes work again: for work that has a process of its own."""
        self.soft_limit: SoftLimit | None = None
        """How long its function may run before it is asked to end; the executor says how that is done."""
        self.waits = 0
        """For how many other runs it waits just now."""
        self.on_wait: Callable[[], None] | None = None
        """Told, maybe on another loop, when it begins to wait for another run."""
        self.saw_cancel = False
        """Whether the work looked and saw that it should stop: then its return is not a success."""
        self._output: CappedText | None = None
        self._steady: Callable[[], Micros] | None = None
        self._outer: RunContext | None = None

    @classmethod
    def detached(cls) -> RunContext:
        """A context without a run, for plain calls of a task in tests: it accepts reports and drops them."""
        claimed = ClaimedRun(
            RunId(0), 0, "function", None, "", "{}", Trigger.API, 0, 0, 1, None, None, None, "detached"
        )
        return cls(claimed, lambda _: None)

    @property
    def id(self) -> RunId:
        """The run's number in the ledger."""
        return self._claimed.id

    @property
    def schedule(self) -> str | None:
        """The name of its schedule."""
        return self._claimed.schedule

    @property
    def due_at(self) -> datetime:
        """When it was due, however late it started."""
        return from_micros(self._claimed.due_at)

    @property
    def zone(self) -> str:
        """The zone of its schedule, or of the settings: an IANA name."""
        return self._claimed.zone or "UTC"

    @property
    def due_local(self) -> datetime:
        """When it was due, by the wall clock of its zone."""
        return local_time(self.zone, self.due_at)

    @property
    def attempt(self) -> int:
        """1 for the first attempt."""
        return self._claimed.attempt

    @property
    def key(self) -> str:
        """The same for all attempts of a run: pass it to other services as an idempotency key."""
        return self._claimed.key or f"run-{self._claimed.id}"

    @property
    def upstreams(self) -> Sequence[Upstream]:
        """The runs that it came after; most runs have none. Those of other schedules are in the order in which they
        ended, the steps before it in a chain in the order of the chain."""
        return tuple(self._claimed.upstreams)

    @property
    def upstream(self) -> Upstream | None:
        """The last of them to end: `upstream.result` is what that run returned."""
        return last_to_end(self._claimed.upstreams)

    @property
    def cancelled(self) -> bool:
        """Whether it should stop; check it in long loops, and return."""
        self.saw_cancel = self.saw_cancel or self._cancelled
        return self._cancelled

    @property
    def draining(self) -> bool:
        """Whether its node drains, from the start of that on: in a long loop, a good time to return early."""
        return self._draining

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report how far it has got."""
        # Told here, where the work can see it, and not when it is recorded.
        self._progress = Progress(
            finite("progress.done", done),
            None if total is None else finite("progress.total", total),
            storable(str(text)),
        )
        self._mark()

    def count(self, name: str, by: float = 1) -> None:
        """Add to one of the run's totals. With `errors` above zero it succeeds with errors, which the
        breaker of its schedule counts as a failure."""
        name, by = checked_total(name, by)
        if self._totals is None:
            self._totals = {}
        self._totals[name] = finite(f"total {name!r}", self._totals.get(name, 0) + by)
        self._mark()

    def set_total(self, name: str, value: float) -> None:
        """Set one of the run's totals, whatever was counted before."""
        name, value = checked_total(name, value)
        if self._totals is None:
            self._totals = {}
        self._totals[name] = value
        self._mark()

    def log(self, text: str) -> None:
        """Add a line to the run's output."""
        self.write(text if text.endswith("\n") else text + "\n")

    def write(self, text: str | bytes) -> None:
        """Add text as it comes to the run's output; bytes are shown as UTF-8, and what is wrong in them readable."""
        if text:
            if self._output is None:
                self._output = self._make_output()
                self._output.mask = self.mask
            self._output.add(text)
            self._mark()

    def heartbeat(self) -> None:
        """Say that it is still at work, and nothing else: for the policy `silent`."""
        self._be_heard()

    def _be_heard(self) -> None:
        if self._steady is not None:
            self.heard_at = self._steady()
        if self._outer is not None:
            self._outer.heartbeat()

    def _mark(self) -> None:
        self._be_heard()
        if not self._is_dirty:
            self._is_dirty = True
            self._changed(self)

    # The runner's side.

    @property
    def is_cancelled(self) -> bool:
        """Whether it should stop, whether its work has seen that or not."""
        return self._cancelled

    @property
    def claimed(self) -> ClaimedRun:
        return self._claimed

    @property
    def trace(self) -> str | None:
        """What the work is a part of and hands on, as trace_context.py has it: that of its span, or of its row."""
        if self.span is not None:
            return self.span.trace
        return None if self._claimed.trace is None else own_trace(self._claimed.trace)

    @property
    def totals(self) -> dict[str, float]:
        """What this attempt has counted."""
        return self._totals or {}

    @property
    def usage(self) -> dict[str, float] | None:
        """What this attempt has used up; None if it said nothing of that."""
        return {name: self.totals[name] for name in USAGE if name in self.totals} or None

    @property
    def spent_before(self) -> float:
        """What the earlier attempts of this run cost, in dollars."""
        return (self._earlier or {}).get("cost_usd", 0)

    def _summed(self) -> dict[str, float]:
        """The totals of the run: those of this attempt, and of what is used up the sum over all attempts."""
        own = dict(self.totals)
        for name, before in (self._earlier or {}).items():
            total = round(before + own.get(name, 0), 9)  # of 0.1 and 0.2 people expect 0.3
            own[name] = total if math.isfinite(total) else before
        return own

    @property
    def has_report(self) -> bool:
        """Whether the work ever reported anything."""
        return self._progress is not None or self._totals is not None or self._output is not None

    def listen(self, steady: Callable[[], Micros]) -> None:
        """From now on, remember in `heard_at` when the work last gave a sign of life."""
        self._steady = steady
        self.heard_at = steady()

    def belong_to(self, outer: RunContext) -> None:
        """The work of that run executes this one: whatever is heard of this is a sign of life of both."""
        self._outer = outer

    def remark(self, text: str) -> None:
        """Add a line of ours to the output, below one that the work has begun and not ended."""
        is_open = self._output is not None and self._output.ends_open
        self.log(f"\nostinato: {text}" if is_open else f"ostinato: {text}")

    def set_draining(self, draining: bool) -> None:
        self._draining = draining
        if self.on_drain is not None:
            self.on_drain(draining)

    def see_cancel(self) -> None:
        """Let the work see that it should stop, though nothing stops it."""
        self._cancelled = True

    def request_cancel(self) -> None:
        self._cancelled = True
        if nested_runs.outer:
            nested_runs.stop(self, "was told to stop")

    def take_report(self, *, final: bool = False) -> tuple[str | None, str | None, Sequence[OutputPart]]:
        """Progress and totals as JSON, None for what was never said; and the output since the last call."""
        self._is_dirty = False
        progress = None if self._progress is None else self.mask.hide_json(msgspec.json.encode(self._progress).decode())
        totals = None if self._totals is None else self.mask.hide_json(msgspec.json.encode(self._summed()).decode())
        output: Sequence[OutputPart] = ()
        if self._output is not None:
            output = self._output.take_all() if final else self._output.take()
        return progress, totals, output
