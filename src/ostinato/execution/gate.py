"""The gate: a command that runs before the work and says whether there is anything to do.

The last line that it prints must be JSON: `{"wake": true, "data": …}` (`wakeAgent` is taken for `wake`). False skips
the run; the data goes to the work. A gate that fails or takes too long skips it too, and counts towards the breaker.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from ostinato.durations import duration_text
from ostinato.execution.context import RunContext
from ostinato.execution.executors.base import ProcessEnvironment
from ostinato.execution.executors.group import NotStarted, ProcessGroup, end_of
from ostinato.execution.executors.interpreter import called
from ostinato.execution.executors.shell import LastLine
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.execution.output import readable
from ostinato.execution.resources import starved
from ostinato.execution.secrets import Mask
from ostinato.models.nesting import MOST_DEPTH, is_deeper
from ostinato.models.policy import Gate
from ostinato.models.states import Cause

__all__ = ["GateResult", "ask_gate"]

_MOST = 1_000_000
"""How many bytes of its last line are kept."""
MOST_DATA = 100_000
"""How many bytes of data, as JSON, it may give to the work."""
_SHOWN = 200
"""How many letters of what it said go into a reason."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The gate said yes, and gave this to the work."""

    data: Any = None


async def ask_gate(
    gate: Gate, process_environment: ProcessEnvironment, context: RunContext, kill_seconds: float
) -> GateResult | Outcome:
    """Run the gate to its end. A cancel of this coroutine ends its processes too."""
    try:
        with called(gate.command) as command:
            return await _ask(command, gate.timeout, process_environment, context, kill_seconds)
    except NotStarted as error:
        return starved(f"its gate: {error}") if error.may_pass else _failed(str(error))


async def _ask(
    command: list[str],
    timeout: timedelta,
    process_environment: ProcessEnvironment,
    context: RunContext,
    kill_seconds: float,
) -> GateResult | Outcome:
    answer = _Answer(context)
    group = await ProcessGroup.start(
        command,
        folder=process_environment.folder,
        environment=process_environment.environment,
        stdout=answer.add,
        stderr=answer.complain,
        kill_seconds=kill_seconds,
    )
    # In real time, whatever the clock says: it is this process that waits.
    timer = asyncio.get_running_loop().call_later(timeout.total_seconds(), group.terminate)
    try:
        status = await group.wait()
    finally:
        timer.cancel()
    if group.was_terminated:
        answer.show_all()
        return _failed(f"it took longer than {duration_text(timeout)}")
    if status != 0:
        answer.show_all()
        last = answer.last_line.text
        return _failed(f"it {end_of(status)}" + (f": {last}" if last else ""))
    if answer.is_cut:
        answer.show_all()
        return _failed('its last line is not JSON such as {"wake": true}: it is longer than a megabyte')
    return _judge(answer.take(), context.mask)


def _judge(line: bytes, mask: Mask) -> GateResult | Outcome:
    shown = mask.shortened(readable(line), _SHOWN)
    if is_deeper(line):
        return _failed(f"its last line is nested more than {MOST_DEPTH} deep: {shown}")
    if not line:
        return _failed('it printed nothing; its last line must be JSON such as {"wake": true}')
    try:
        said = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return _failed(f'its last line is not JSON such as {{"wake": true}}: {shown}')
    wake = said.get("wake", said.get("wakeAgent")) if isinstance(said, dict) else None
    if not isinstance(wake, bool):
        return _failed(f'its last line has no "wake" that is true or false: {shown}')
    if not wake:
        why = f": {mask.shortened(reason, _SHOWN)}" if isinstance(reason := said.get("reason"), str) else ""
        return Outcome(OutcomeKind.SKIPPED, f"the gate said no{why}", cause=Cause.GATE)
    data = said.get("data")
    if (size := len(msgspec.json.encode(data))) > MOST_DATA:
        # It goes into one variable, or one argument: the system has no room for more.
        return _failed(
            f"its data has {size:,} bytes, and at most {MOST_DATA:,} can be handed on: "
            "let it write a file, and give its name"
        )
    return GateResult(data)


class _Answer:
    """What the gate prints: the last line is its answer, all else is output of the run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._held = b""
        """What may be the answer: the last line that is not empty, and what follows it."""
        self.is_cut = False
        """Whether the beginning of that line was too much to hold."""
        self.last_line = LastLine(context)

    def complain(self, data: bytes) -> None:
        """Something on stderr."""
        self.last_line.add(data)
        self._context.write(data)

    def add(self, data: bytes) -> None:
        """Something on stdout."""
        self.last_line.add(data)
        held = self._held + data
        begin = held.rfind(b"\n", 0, len(held.rstrip())) + 1
        self.is_cut = self.is_cut and not begin
        # A line of more than a megabyte is no answer.
        if len(held) - begin > _MOST:
            begin, self.is_cut = len(held) - _MOST, True
        if begin:
            self._context.write(held[:begin])
        self._held = held[begin:]

    def take(self) -> bytes:
        """The answer."""
        return self._held.strip()

    def show_all(self) -> None:
        """There is no answer in it."""
        self._context.write(self._held)


def _failed(why: str) -> Outcome:
    return Outcome(OutcomeKind.SKIPPED, f"the gate failed: {why}", cause=Cause.GATE, blame=Blame.WORK)
