"""Agents: a prompt is given to a command line that speaks with a model, and its answer becomes the result.

command.py says how it is called, readers.py chooses who reads what it prints, agent_outcome.py judges it, report.py
keeps its report; the process itself is group.py's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self
from uuid import uuid4

import msgspec

from ostinato.agent_clis import AgentCli
from ostinato.clock import Micros, from_micros
from ostinato.config import Settings
from ostinato.execution.executors.agent.agent_outcome import agent_outcome, has_begun, has_vanished
from ostinato.execution.executors.agent.agent_stream import AgentStream
from ostinato.execution.executors.agent.command import (
    BUILT_IN_PROMPT,
    CHAT_PROMPT,
    Invocation,
    can_continue,
    invocation,
    knows_budget,
    prompt_text,
    system_text,
)
from ostinato.execution.executors.agent.output import StderrTail
from ostinato.execution.executors.agent.readers import reader_for
from ostinato.execution.executors.agent.report import ReportFile
from ostinato.execution.executors.base import STOPPED, Call, ExecutorHost, ProcessEnvironment
from ostinato.execution.executors.group import NotStarted
from ostinato.execution.executors.process_call import ProcessCall, ProcessExecutor
from ostinato.execution.executors.report import ReportChannel
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.execution.output import storable
from ostinato.execution.resources import starved
from ostinato.models.states import Cause, Trigger
from ostinato.models.work import Agent
from ostinato.timing.zones import local_text, local_time

__all__ = ["Agents"]


class Agents(ProcessExecutor):
    """Prompts for the command lines of the settings."""

    def __init__(self, settings: Settings, now: Callable[[], Micros]) -> None:
        super().__init__(settings.tuning)
        self._settings = settings
        self._now = now

    @classmethod
    def made(cls, host: ExecutorHost) -> Self:
        return cls(host.settings, host.now)

    def _begin(self, call: Call) -> ProcessCall:
        return _AgentCall(call, self._settings, self._now)


@dataclass(slots=True)
class _Ended:
    """One call of the command line, from its beginning to its end."""

    called: Invocation
    stream: AgentStream
    status: int


class _AgentCall(ProcessCall):
    """One prompt, from its start to its outcome; a vanished conversation takes a second process."""

    lost = "the agent could not be attended to"

    def __init__(self, call: Call, settings: Settings, now: Callable[[], Micros]) -> None:
        assert isinstance(call.work, Agent)
        assert call.process_environment is not None
        self._work: Agent = call.work
        self._prepared: ProcessEnvironment = call.process_environment
        self._settings = settings
        self._now = now
        self._report: ReportFile | None = None
        self._fault: Exception | None = None
        """What went wrong with what it said."""
        super().__init__(call, settings.tuning)

    def _done(self, outcome: Outcome) -> None:
        # The report stays until the ledger has it.
        super()._done(outcome if self._report is None else replace(outcome, recorded=self._report.remove))

    async def _execute(self) -> Outcome:
        work, prepared = self._work, self._prepared
        cli = self._settings.agent_clis.get(work.cli)
        if cli is None or (work.is_continued and not can_continue(cli)) or _wants_claude(work, cli):
            return _impossible(work, self._settings)
        if prepared.allowance is not None and not knows_budget(cli):
            self._call.context.log(
                f"ostinato: {work.cli} cannot be told that this run may cost {prepared.allowance:g} dollars: "
                f"put {{budget}} into its command under [agents.{work.cli}] in ostinato.toml, if it has a flag for that"
            )
        report = self._report = self._make_report()
        note = None
        with self._environment(cli) as environment:
            ended = await self._converse(cli, environment, report, prepared.conversation)
            if prepared.conversation and not self._is_stopping and has_vanished(ended.stream, ended.status):
                note = f"conversation {prepared.conversation} no longer exists, so a new one was begun"
                self._call.context.log(f"ostinato: {note}")
                ended = await self._converse(cli, environment, report, None)
        for name, value in _totals(ended).items():
            self._call.context.set_total(name, value)
        return self._outcome(cli, ended, self._read_report(report), note)

    async def _converse(
        self, cli: AgentCli, environment: dict[str, str], report: ReportFile | None, resumed: str | None
    ) -> _Ended:
        """Call the command line once, and hear it out."""
        called = self._invocation(cli, report, resumed)
        context = self._call.context
        stream, show = AgentStream(context.mask), context.write
        printed, complaints = reader_for(cli, stream, show), StderrTail(stream, show)
        group = await self._start(
            called.command,
            folder=self._prepared.folder,
            environment=environment,
            stdout=self._guarded(printed.feed),
            stderr=self._guarded(complaints.feed),
            stdin=called.stdin,
        )
        context.spends = True
        status = await group.wait()
        self._group = None
        if self._fault is not None:
            raise self._fault
        complaints.close()
        printed.close()
        return _Ended(called, stream, status)

    def _invocation(self, cli: AgentCli, report: ReportFile | None, resumed: str | None) -> Invocation:
        context, work = self._call.context, self._work
        begun_at = context.claimed.started_at
        template = self._settings.agent_prompt
        if template is None:
            template = CHAT_PROMPT if context.claimed.trigger == Trigger.MESSAGE else BUILT_IN_PROMPT
        values = {
            "report": None if report is None else str(report.path),
            "run": str(context.id),
            "schedule": context.schedule,
            "due_at": context.due_at.isoformat().replace("+00:00", "Z"),
            "due_local": _told(context.due_at, context.zone),
            "now_local": None if begun_at is None else _told(from_micros(begun_at), context.zone),
            "zone": context.zone,
            "session": context.claimed.session,
        }
        return invocation(
            cli,
            work,
            prompt=prompt_text(work.prompt, context.gate),
            system=system_text(template, values, work.system),
            report=values["report"],
            new=str(uuid4()),
            resumed=resumed,
            allowance=self._prepared.allowance,
        )

    def _guarded(self, feed: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """Nobody reads on after an error: without a kill, the agent would wait for that."""

        def take(data: bytes) -> None:
            self._call.context.heartbeat()  # not all of it is shown
            if self._fault is None:
                try:
                    feed(data)
                except Exception as error:
                    self._fault = error
                    if self._group is not None:
                        self._group.kill()

        return take

    @contextlib.contextmanager
    def _environment(self, cli: AgentCli) -> Iterator[dict[str, str]]:
        """The environment of the command line, with the side channel while it is needed."""
        # Some believe this more than the folder that they are started in.
        environment = {**self._prepared.environment, "PWD": str(self._prepared.folder.absolute())}
        if cli.speaks_claude:
            environment.pop("CLAUDECODE", None)  # inside of another Claude Code it refuses to start
        with ReportChannel.made(self._call.context) as path:
            yield {**environment, "OSTINATO_REPORT": path}

    def _make_report(self) -> ReportFile | None:
        try:
            return ReportFile(self._prepared.folder, self._call.context.id, self._tuning.agent_report_bytes)
        except OSError as error:
            self._call.context.log(
                f"ostinato: this run has no report: .ostinato cannot be made in {self._prepared.folder} ({error})"
            )
            return None

    def _read_report(self, report: ReportFile | None) -> str | None:
        try:
            return None if report is None else self._call.context.mask.hide_in(report.read())
        except OSError as error:
            self._call.context.log(f"ostinato: the report of this run cannot be read: {error}")
            return None

    def _outcome(self, cli: AgentCli, ended: _Ended, report: str | None, note: str | None) -> Outcome:
        stream, context = ended.stream, self._call.context
        outcome = agent_outcome(
            self._work.cli,
            stream,
            ended.status,
            now=self._now(),
            login=cli.login,
            allowance=self._prepared.allowance,
        )
        if outcome.kind is not OutcomeKind.RETURNED and report:
            # The result of an attempt that is repeated is not kept, but its output is.
            context.log(f"ostinato: the report of this attempt:\n{report}")
        # Only a result says that it had answered by then: of plain text, nobody knows whether it was all.
        if self._is_stopping and (outcome.kind is not OutcomeKind.RETURNED or stream.is_plain):
            # The next message goes on from there; and what had not begun may be tried again.
            return replace(STOPPED, conversation=_conversation(ended), begun=has_begun(stream))
        left = None if outcome.blame is Blame.SETUP else _conversation(ended)
        if left is None and self._work.is_continued and outcome.kind is OutcomeKind.RETURNED:
            context.log(f"ostinato: {self._work.cli} did not name its conversation, so the next run begins a new one")
        result = {  # its secrets are hidden already: as JSON, some would look different
            "text": storable(stream.text),
            "session_id": left or ended.called.conversation,
            "report": None if report is None else storable(report),
        }
        return replace(
            outcome,
            reason="; ".join(filter(None, (outcome.reason, note))) or None,
            result=msgspec.json.encode(result).decode(),
            conversation=left,
            context=_context(stream),
        )

    def _not_started(self, error: NotStarted) -> Outcome:
        if error.may_pass:
            return starved(str(error))
        cli = self._settings.agent_clis[self._work.cli]
        install = f"{cli.install}, or " if cli.install else ""
        return Outcome(
            OutcomeKind.ABORTED,
            f"the agent {self._work.cli!r} cannot be started: {error}; "
            f"{install}set command under [agents.{self._work.cli}] in ostinato.toml",
            cause=Cause.NOT_STARTED,
            begun=False,
        )


def _totals(ended: _Ended) -> dict[str, float]:
    """What the call used; a count over the whole conversation is not that of one of its calls."""
    totals = dict(ended.stream.totals)
    if ended.stream.counts_conversation and ended.called.is_continued:
        totals = {name: value for name, value in totals.items() if not name.startswith("tokens_")}
    return totals


def _context(stream: AgentStream) -> dict[str, int]:
    """How full its context is, as far as it told."""
    told = {"context_used": stream.context_tokens, "context_window": stream.context_window}
    return {name: tokens for name, tokens in told.items() if tokens is not None}


def _told(moment: datetime, zone: str) -> str:
    """A time as an agent is told it: its day of the week is easily got wrong."""
    return f"{local_time(zone, moment):%A}, {local_text(zone, moment)}"


def _wants_claude(work: Agent, cli: AgentCli) -> list[str]:
    """What was asked for that only Claude Code has: without it, an agent could do more than it should."""
    given = {
        "permission_mode": work.permission_mode,
        "allowed_tools": work.allowed_tools,
        "mcp_config": work.mcp_config,
    }
    return [] if cli.speaks_claude else [name for name, value in given.items() if value]


def _impossible(work: Agent, settings: Settings) -> Outcome:
    table = f"[agents.{work.cli}] in ostinato.toml"
    cli = settings.agent_clis.get(work.cli)
    if cli is not None and (flags := _wants_claude(work, cli)):
        reason = (
            f"the agent {work.cli!r} does not support {', '.join(flags)}: put it into its command under {table}, "
            "or set speaks_claude there"
        )
    elif cli is not None:
        reason = (
            f"the agent {work.cli!r} cannot continue a conversation, as context={work.context!r} wants: "
            f"set resume under {table}, or use context='isolated'"
        )
    else:
        known = ", ".join(sorted(settings.agent_clis))
        reason = f"there is no agent {work.cli!r}, only {known}: set its command under {table}"
    return Outcome(OutcomeKind.ABORTED, f"this run cannot be executed: {reason}", cause=Cause.NOT_STARTED, begun=False)


def _conversation(ended: _Ended) -> str | None:
    """The conversation that the next run continues; None if it is the same as before, or unknown.

    The id may change with every call. Only a result names one that is surely there: at the beginning of a continued
    conversation, some versions name one that is not.
    """
    stream, called = ended.stream, ended.called
    if stream.session_id is not None:
        return stream.session_id
    if called.is_continued:
        return called.conversation if stream.answered else None
    return stream.begun or (called.conversation if stream.answered and ended.status == 0 else None)
