"""Shell commands: a text through its interpreter, a list as it is, each in a process group of its own.

What it prints is the run's output, as it comes; what it says through `$OSTINATO_REPORT` are totals and progress. Its
exit status decides.
"""

from __future__ import annotations

import math
import os
import pwd
import re
import resource
import signal
from collections.abc import Mapping

from ostinato.execution.context import RunContext
from ostinato.execution.executors.base import STOPPED, Call
from ostinato.execution.executors.group import UNKNOWN, NotStarted, end_of
from ostinato.execution.executors.interpreter import called, check_is_there
from ostinato.execution.executors.process_call import ProcessCall, ProcessExecutor
from ostinato.execution.executors.report import ReportChannel
from ostinato.execution.executors.starting import look_for
from ostinato.execution.outcome import Outcome, OutcomeKind
from ostinato.execution.output import readable
from ostinato.models.states import Cause
from ostinato.models.work import Shell
from ostinato.tuning import Tuning

__all__ = ["LastLine", "Shells"]

_WINDOW = 4_096
"""How many of the last bytes are looked at for a last line."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""What a terminal would obey: colours, titles, moves."""
_LINE = 200
"""How much of it goes into a reason."""
_CPU_GRACE = 5
"""How many seconds of processor time it has after SIGXCPU, before SIGKILL."""


class Shells(ProcessExecutor):
    """Commands."""

    def _begin(self, call: Call) -> ProcessCall:
        return _Command(call, self._tuning)


class _Command(ProcessCall):
    """One command, from its start to its outcome."""

    lost = "its command was lost"

    def __init__(self, call: Call, tuning: Tuning) -> None:
        assert isinstance(call.work, Shell)
        self._work = call.work
        self._last = LastLine(call.context)
        super().__init__(call, tuning)

    async def _execute(self) -> Outcome:
        process_environment, work = self._call.process_environment, self._work
        assert process_environment is not None
        found = None if work.user is None else _user(work.user)
        with (
            called(work.command, work.interpreter, found) as asked,
            ReportChannel.made(self._call.context, found and (found.pw_uid, found.pw_gid)) as path,
        ):
            environment = {**process_environment.environment, **_home(found), "OSTINATO_REPORT": path}
            try:
                command = _limited(asked, work, found)
                if command is not asked:
                    look_for(asked, process_environment.folder, environment, found)
                group = await self._start(
                    command, folder=process_environment.folder, environment=environment, stdout=self._heard, user=found
                )
            except NotStarted:
                check_is_there(work.interpreter, environment)  # which says better what is wrong
                raise
            return self._outcome(await group.wait())

    def _heard(self, data: bytes) -> None:
        self._last.add(data)
        self._call.context.write(data)

    def _outcome(self, status: int) -> Outcome:
        if self._is_stopping:
            return STOPPED
        if status == UNKNOWN:
            return Outcome(OutcomeKind.FAILED, end_of(status), cause=Cause.EXIT_STATUS)
        # As shells say it: 128 and the number of the signal.
        code = status if status >= 0 else 128 - status
        result = f'{{"exit_code":{code}}}'
        if status == 0:
            return Outcome(OutcomeKind.RETURNED, result=result)
        reason = end_of(status)
        if self._work.cpu is not None and code == 128 + signal.SIGXCPU:
            reason += f": it used up its {_whole_seconds(self._work.cpu)} s of processor time"
        elif last := self._last.text:
            reason += f": {last}"
        return Outcome(OutcomeKind.FAILED, reason, result=result, cause=Cause.EXIT_STATUS)


class LastLine:
    """The last line of what a command prints, for the reason of its failure."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._end = b""
        self._is_whole = True

    def add(self, data: bytes) -> None:
        """Text as it comes."""
        if len(self._end) + len(data) > _WINDOW:
            self._is_whole = False
        self._end = (self._end + data[-_WINDOW:])[-_WINDOW:]

    @property
    def text(self) -> str:
        """The last line that is not empty, without secrets; empty if there is none, or it is too long to be found."""
        mask, end = self._context.mask, self._end
        if not self._is_whole:
            end = end[next((at for at in range(3) if end[at] & 0xC0 != 0x80), 0) :]  # not the rest of a character
        # A reason is plain text; and colours within a secret must not keep it from being found.
        plain = _ESCAPES.sub("", readable(end))
        text = mask.hide_cut(plain, begin=not self._is_whole, end=True)
        lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip()]
        return mask.shortened(lines[-1], _LINE) if lines else ""


def _user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise NotStarted(f"there is no user {name!r} on this machine: add it, or correct user") from None


def _home(user: pwd.struct_passwd | None) -> Mapping[str, str]:
    if user is None:
        return {}
    return {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}


def _limited(command: list[str], work: Shell, user: pwd.struct_passwd | None) -> list[str]:
    """The command, behind a small script that sets what was asked for."""
    steps = []
    if work.memory is not None:
        assert isinstance(work.memory, int)
        steps.append(f"ulimit -v {_within(resource.RLIMIT_AS, work.memory) // 1024}")
    if work.cpu is not None:
        seconds = _within(resource.RLIMIT_CPU, _whole_seconds(work.cpu))
        steps.append(f"ulimit -S -t {seconds} && ulimit -H -t {_within(resource.RLIMIT_CPU, seconds + _CPU_GRACE)}")
    if work.nice is None:
        run = 'exec "$@"'
    else:
        uid = os.geteuid() if user is None else user.pw_uid
        if work.nice < 0 and uid != 0:
            raise NotStarted(f"nice={work.nice} needs root, and it runs as uid {uid}: give 0 to 19")
        run = f'exec nice -n {work.nice} "$@"'
    if not steps and work.nice is None:
        return command
    return ["/bin/sh", "-c", " && ".join([*steps, run]), "sh", *command]


def _within(limit: int, wanted: int) -> int:
    """What was asked for, or less if the engine itself may not have as much."""
    hardest = resource.getrlimit(limit)[1]
    return wanted if hardest == resource.RLIM_INFINITY else min(wanted, hardest)


def _whole_seconds(cpu: float | str) -> int:
    assert not isinstance(cpu, str)
    return math.ceil(cpu)
