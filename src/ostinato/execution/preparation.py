"""What comes before the work, in this order: checks, environment, gate, budget. Each can say no with an Outcome.

Only work that asks for one of them comes here: a plain function is called at once.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import msgspec

from ostinato.clock import Clock, from_micros
from ostinato.config import SYSTEMD_VARIABLES, Settings, absolute_db, passwords_in
from ostinato.errors import InvalidInput, StoreUnavailable
from ostinato.execution.context import RunContext
from ostinato.execution.executors.base import Call, ProcessEnvironment
from ostinato.execution.gate import GateResult, ask_gate
from ostinato.execution.outcome import Outcome, OutcomeKind
from ostinato.execution.registry import Registry
from ostinato.execution.resources import is_exhausted, starved
from ostinato.execution.secrets import NO_SECRETS, Mask, embedded, literal_secrets, resolve_all
from ostinato.execution.threads import on_own_thread
from ostinato.execution.upstreams import UPSTREAM_VARIABLES, upstream_environment
from ostinato.logs import one_line
from ostinato.models.budget import MICRO, BudgetOwner, Reservation, SessionBudget, grant
from ostinato.models.ids import RunId
from ostinato.models.installed_kinds import kind_of
from ostinato.models.policy import Policy
from ostinato.models.project import ProjectContext
from ostinato.models.run import ClaimedRun
from ostinato.models.session import SHARED_TURN
from ostinato.models.states import Cause, Trigger
from ostinato.models.upstream import Upstream
from ostinato.models.work import Function, ProcessWork, Shell, Work
from ostinato.models.work_kinds import WorkKind
from ostinato.stores.base import ProjectStore
from ostinato.trace_context import trace_environment

__all__ = ["Preparation", "UpstreamsOf", "needs_preparation"]

UpstreamsOf = Callable[[RunId], Awaitable[Sequence[Upstream]]]
"""Asks the ledger for the runs that one came after."""

_WAIT = timedelta(seconds=30)
"""Until a run looks again whether others have used what they reserved of its budget."""
_OUTAGE = timedelta(seconds=5)
_OF_OUTER_RUN = frozenset({"OSTINATO_GATE", "OSTINATO_REPORT", "TRACEPARENT", "TRACESTATE", *UPSTREAM_VARIABLES})
"""The engine may be started by a run of another one; what that was given is not for ours."""
_FOR_ANYBODY = re.compile(r"PATH|LANG|LC_\w+|TZ|TERM")
"""What a command of another user gets of the engine's environment: the rest may hold what is not for that user."""


def needs_preparation(claimed: ClaimedRun, policy: Policy, work: Work) -> bool:
    """Whether anything comes before this work."""
    return (
        not isinstance(work, Function)
        or policy.gate is not None
        or policy.budget is not None
        or _may_follow(claimed)
        or _is_checked(claimed, policy)
    )


def _may_follow(claimed: ClaimedRun) -> bool:
    """Whether it may have come after others: by itself, or as one of those that is run again."""
    return claimed.trigger in (Trigger.AFTER, Trigger.MANUAL)


def _is_checked(claimed: ClaimedRun, policy: Policy) -> bool:
    return bool(policy.checks) and claimed.by_itself


class Preparation:
    """Makes calls ready. It is the only part of execution that asks the store."""

    def __init__(
        self, registry: Registry, projects: ProjectStore, upstreams_of: UpstreamsOf, settings: Settings, clock: Clock
    ) -> None:
        self._upstreams_of = upstreams_of
        self._registry = registry
        self._projects = projects
        self._clock = clock
        self._zone = settings.tz
        self._folder_seconds = settings.tuning.folder_seconds
        self._kill_seconds = settings.tuning.command_kill_seconds
        # Read once: an environment is slow to read, and what the work adds to it is little.
        # Without the token of the bot: work that has it could speak for the bot, and read what people write to it.
        hidden = {*_OF_OUTER_RUN, *SYSTEMD_VARIABLES, (settings.telegram.token or "").removeprefix("env:")}
        self._environment = {name: value for name, value in os.environ.items() if name not in hidden}
        if (place := absolute_db(settings.db)) is not None:
            self._environment["OSTINATO_DB"] = place  # for commands that call `ostinato`, in whatever folder
        self._for_anybody = {name: value for name, value in self._environment.items() if _FOR_ANYBODY.fullmatch(name)}
        self._passwords = passwords_in(settings.db) + passwords_in(self._environment.get("OSTINATO_DB", ""))

    async def prepare(self, claimed: ClaimedRun, policy: Policy, call: Call) -> Outcome | None:
        """Make the call ready to be started; an Outcome if it is not to be."""
        try:
            return await self._prepare(claimed, policy, call)
        except StoreUnavailable as error:
            return Outcome(OutcomeKind.PUT_OFF, f"the database cannot be reached: {error}", delay=_OUTAGE)

    async def _prepare(self, claimed: ClaimedRun, policy: Policy, call: Call) -> Outcome | None:
        if _is_checked(claimed, policy) and (failures := await self._registry.failed_checks(policy.checks)):
            listed = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
            return Outcome(OutcomeKind.SKIPPED, f"check failed: {listed}", cause=Cause.CHECK)
        if _may_follow(claimed):
            claimed.upstreams = await self._upstreams_of(claimed.id)
        if not isinstance(call.work, Function) or policy.gate is not None:
            found = await self._find_environment(claimed, policy, call)
            if isinstance(found, Outcome):
                return found
            call.process_environment = found
            if policy.gate is not None:
                if (refusal := await self._foresee(claimed, policy)) is not None:
                    return refusal
                # It runs as the engine does, whoever the command is for.
                around = replace(found, environment={**self._environment, **found.environment})
                verdict = await ask_gate(policy.gate, around, call.context, self._kill_seconds)
                if isinstance(verdict, Outcome):
                    return verdict
                _hand_over(verdict, found, call)
        return await self._reserve(claimed, policy, call)

    async def _find_environment(self, claimed: ClaimedRun, policy: Policy, call: Call) -> ProcessEnvironment | Outcome:
        work = call.work
        key = work.conversation(claimed.project)
        project: ProjectContext | None = ProjectContext()
        if claimed.project is not None or key is not None:
            project = await self._projects.find_context(claimed.project, key)
        if project is None:
            return _impossible(
                f"there is no project {claimed.project!r} any more: add it again with 'ostinato project add "
                f"{claimed.project} FOLDER', or give the schedule another one"
            )
        home = Path.cwd() if project.folder is None else Path(project.folder)
        folder, variables, kind = home, dict(project.env), kind_of(work)
        if isinstance(work, ProcessWork):
            folder = home if work.folder is None else home / work.folder
            variables |= work.env
        elif policy.gate is None:
            variables = {}  # only a process has an environment
        is_added = call.definition is not None and not isinstance(work, Function)
        references = {} if isinstance(work, ProcessWork) else kind.references(work)
        hidden = [*self._passwords, *literal_secrets(references, by_name=not is_added)]
        is_plain = project.folder is None and folder == home and not _has_files(variables, references)
        try:
            if is_plain:
                found = _look(home, None, variables, references, hidden)
            else:
                async with asyncio.timeout(self._folder_seconds):
                    found = await on_own_thread(lambda: _look(home, folder, variables, references, hidden))
        except TimeoutError:
            return Outcome(
                OutcomeKind.FAILED,
                f"{folder}, or a file: of its secrets, did not answer within {self._folder_seconds:g}s: "
                "check its file system",
                cause=Cause.NOT_STARTED,
                begun=False,
            )
        if isinstance(found, Outcome):
            return found
        if isinstance(found, InvalidInput):
            return _impossible(str(found))
        if found is None:
            of = f"the folder of project {claimed.project!r}" if folder == home and claimed.project else "its folder"
            return _impossible(f"{of}, {folder}, does not exist on this node: make it, or correct it")
        # Before anything is said in its output.
        if found.mask.has_any:
            call.context.mask = found.mask
        _tell_embedded(call.context, {**embedded(variables), **embedded(references, headers=True)})
        if is_added and (refusal := _as_call(call, kind, found.references)) is not None:
            return refusal
        of_other = isinstance(work, ProcessWork) and work.user is not None
        return ProcessEnvironment(
            folder,
            {
                **(self._for_anybody if of_other else self._environment),
                **trace_environment(call.context.trace),
                **found.environment,
                **_said_of(claimed, call.context),
            },
            found.references,
            project.conversation,
        )

    async def _foresee(self, claimed: ClaimedRun, policy: Policy) -> Outcome | None:
        """Whether the budget would refuse, before a gate does its own work in vain."""
        owner = self._owner(claimed)
        if policy.budget is None or owner is None:
            return None
        day = await self._projects.read_spending(owner, self._clock.now())
        answer = grant(policy.budget, day, counted=claimed.attempt > 1)
        return None if answer.refusal is None else _refused(claimed, answer.refusal, is_final=answer.is_final)

    async def _reserve(self, claimed: ClaimedRun, policy: Policy, call: Call) -> Outcome | None:
        """Ask the budget."""
        budget = policy.budget
        if budget is None:
            return None
        if budget.per_run_usd is not None and (spent := call.context.spent_before):
            if spent >= budget.per_run_usd:
                why = f"${spent:g} of ${budget.per_run_usd:g} that this run may cost are spent"
                return _refused(claimed, why, is_final=True)
            budget = replace(budget, per_run_usd=budget.per_run_usd - spent)
        amount: float | None = budget.per_run_usd
        owner = self._owner(claimed)
        if owner is not None:
            wanted = Reservation(claimed.id, claimed.token, owner, budget, self._clock.now())
            answer = await self._projects.reserve(wanted)
            if answer.refusal is not None:
                return _refused(claimed, answer.refusal, is_final=answer.is_final)
            amount = None if answer.amount is None else answer.amount / MICRO
        if call.process_environment is not None:
            call.process_environment.allowance = amount
        return None

    def _owner(self, claimed: ClaimedRun) -> BudgetOwner | None:
        """Whose budget it is: its schedule's, or that of the session it was sent to."""
        if claimed.schedule_id is not None:
            return claimed.schedule_id
        if claimed.session is None or claimed.session.startswith(SHARED_TURN):
            return None  # what shares the turn of an outer run has that one's budget above it
        return SessionBudget(claimed.session, self._zone)


def _refused(claimed: ClaimedRun, why: str, *, is_final: bool) -> Outcome:
    """What a run does that its budget does not let start. One that was tried before has failed."""
    if not is_final:
        return Outcome(OutcomeKind.PUT_OFF, f"budget: {why}", cause=Cause.BUDGET, delay=_WAIT)
    if claimed.attempt > 1:
        return Outcome(
            OutcomeKind.ABORTED,
            f"attempt {claimed.attempt - 1} failed, and the budget allows no further attempt: {why}",
            cause=Cause.BUDGET,
        )
    return Outcome(OutcomeKind.SKIPPED, f"budget: {why}", cause=Cause.BUDGET)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is there for the work."""

    environment: dict[str, str]
    references: dict[str, str]
    mask: Mask
    """Made here, beside the loop: a key of a thousand lines takes its time."""


def _has_files(*values: Mapping[str, str]) -> bool:
    """Whether one of them may be read from a file."""
    return any("file:" in value for each in values for value in each.values())


def _look(
    home: Path,
    folder: Path | None,
    variables: Mapping[str, str],
    references: Mapping[str, str],
    known: Iterable[str],
) -> _Found | InvalidInput | Outcome | None:
    """What the disk says, which may take its time: what was found; what is wrong; None if there is no such folder.

    An Outcome, if this node had no room to look."""
    try:
        if folder is not None and not folder.is_dir():
            return None
        environment, secrets = resolve_all(variables, os.environ, home)
        resolved, more = resolve_all(references, os.environ, home, headers=True)
    except InvalidInput as error:
        return error
    except (OSError, ValueError) as error:
        if is_exhausted(error):
            return starved(one_line(error))
        return InvalidInput(f"its folder {folder} cannot be read: {error}")
    hidden = [*secrets, *more, *known]
    return _Found(environment, resolved, Mask(hidden) if hidden else NO_SECRETS)


def _tell_embedded(context: RunContext, references: Mapping[str, str]) -> None:
    for name, reference in references.items():
        context.log(
            f"ostinato: {name} has {reference} within its value, which is passed on unchanged: "
            "a reference must be the whole value; in a header, a word may stand before it"
        )


def _said_of(claimed: ClaimedRun, context: RunContext) -> dict[str, str]:
    """What scripts may rely on in their environment."""
    return {
        "OSTINATO_RUN_ID": str(claimed.id),
        "OSTINATO_NODE": claimed.node or "",
        "OSTINATO_OUTER_RUNS": ",".join(map(str, claimed.outer)),
        "OSTINATO_SCHEDULE": claimed.schedule or "",
        "OSTINATO_PROJECT": claimed.project or "",
        "OSTINATO_DUE_AT": from_micros(claimed.due_at).isoformat().replace("+00:00", "Z"),
        "OSTINATO_DUE_AT_LOCAL": context.due_local.isoformat(),
        # The name of a setting, too: what `ostinato` is told inside of a run is meant in the run's zone.
        "OSTINATO_TZ": context.zone,
        "OSTINATO_ATTEMPT": str(claimed.attempt),
        "OSTINATO_KEY": context.key,
        **upstream_environment(context.upstreams),
    }


def _hand_over(verdict: GateResult, process_environment: ProcessEnvironment, call: Call) -> None:
    call.context.gate = verdict.data
    if isinstance(call.work, Shell):  # an agent has it in its prompt, a function in its context
        said = "" if verdict.data is None else msgspec.json.encode(verdict.data).decode()
        process_environment.environment = {**process_environment.environment, "OSTINATO_GATE": said}


def _as_call(call: Call, kind: WorkKind, references: Mapping[str, str]) -> Outcome | None:
    """The work of a package becomes a call of its function, with the work as it is with its secrets."""
    assert call.definition is not None
    try:
        call.work = Function(call.definition.name, [kind.resolved(call.work, references), call.context])
    except Exception as error:  # what its class checks does not hold for what a reference stands for
        return _impossible(one_line(error))
    return None


def _impossible(reason: str) -> Outcome:
    return Outcome(OutcomeKind.ABORTED, f"this run cannot be executed: {reason}", cause=Cause.NOT_STARTED)
