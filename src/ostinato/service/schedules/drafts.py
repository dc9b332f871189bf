"""From what people give to what is stored: a checked ScheduleDraft. Pure: the time is passed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ostinato.clock import Micros, from_micros, micros_of, to_micros
from ostinato.durations import duration_text
from ostinato.errors import InvalidInput, TimingError
from ostinato.models.ids import RunId
from ostinato.models.installed_kinds import kind_of
from ostinato.models.policy import (
    DEFAULT,
    NO_RETRY,
    Policy,
    PolicyOptions,
    check_key,
    check_soft_timeout,
    make_policy,
    policy_text,
)
from ostinato.models.policy_fields import RUN_ONCE
from ostinato.models.project import NO_PROJECT, check_project
from ostinato.models.run import OuterRun
from ostinato.models.schedule import ScheduleDraft
from ostinato.models.session_options import SessionOptions
from ostinato.models.task import TaskDescription, TaskSchedule
from ostinato.models.work import Agent, CheckIn, Function, Http, Shell, Work, default_policy, work_text
from ostinato.models.work_values import GivenCall
from ostinato.plurals import counted
from ostinato.timing import After, Timing, parse_timing
from ostinato.timing.calendar_days import NO_DATES
from ostinato.timing.text import check_reads_back
from ostinato.timing.zones import Zone, check_zone

__all__ = [
    "Code",
    "Placed",
    "ScheduleSpec",
    "TaskLike",
    "WorkLike",
    "check_name",
    "first_due",
    "make_draft",
    "place",
    "policy_for_enqueue",
    "resolve_work",
    "stored_work",
    "task_schedule",
    "with_runs",
]


@runtime_checkable
class TaskLike(Protocol):
    """A task as the app's decorator makes it."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, Any]:
        """The policy that was given with the task."""
        ...


class Code(Protocol):
    """What the code of this process knows of tasks and checks; nothing, at a command line without an app."""

    def options_of(self, task: str) -> Mapping[str, Any]:
        """The policy that was given with a task; nothing if it is not known here."""
        ...

    def session_options_of(self, task: str) -> SessionOptions:
        """How messages for a task wait in their sessions; nothing if it is not known here."""
        ...

    def takes_payloads(self, task: str) -> bool | None:
        """Whether a task can be called with `payloads`; None if it is not known here."""
        ...

    def described_tasks(self) -> Mapping[str, TaskDescription]:
        """What is known here of every task, by name."""
        ...

    async def stored_calls(self, task: str, calls: Iterable[GivenCall], *, from_json: bool = False) -> list[Function]:
        """Calls of a task as they are stored; InvalidInput names the argument that does not fit, if that is known.
        `from_json`: they were given as JSON, in which text stands for bytes."""
        ...

    def own_run(self) -> RunId | None:
        """The run that calls from within its own work."""
        ...

    def waiting(self) -> AbstractContextManager[OuterRun | None]:
        """While the run that calls from within its own work, which is the answer, waits for another one."""
        ...

    async def failed_checks(self, names: Iterable[str]) -> dict[str, str]:
        """Run the checks of these names and answer the failed ones with their reasons."""
        ...


WorkLike = Work | TaskLike | str
"""Work, a task, or the name of a task."""


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """A schedule as its user writes it."""

    name: str
    timing: Timing | str
    work: WorkLike
    tz: Zone | None = None
    enabled: bool = True
    note: str | None = None
    project: str | None = None
    owner: str = "user"
    origin: str | None = None
    policy: PolicyOptions = field(default_factory=PolicyOptions)
    kept: Policy | None = None
    """The policy of the schedule that is edited: what of it was taken once is not refused now."""

    def bound(self, zone: str) -> Timing:
        """Its timing in its zone; in this one, if it names none."""
        own = check_zone(self.tz or zone)
        found = parse_timing(self.timing, tz=own) if isinstance(self.timing, str) else self.timing.in_zone(own)
        return found.named(self.name)


def make_draft(spec: ScheduleSpec, zone: str, now: Micros, code: Code) -> ScheduleDraft:
    """Check everything and compute the first due time; wrong input is told by its field."""
    check_name(spec.name)
    placed = place(spec.timing, check_zone(spec.tz or zone), now, spec.name)
    work, options = resolve_work(spec.work, code)
    if placed.follows and isinstance(work, CheckIn):
        raise InvalidInput(
            "a check-in is awaited at a time, not after another schedule",
            field="timing",
            hint="give the times at which the machine checks in, such as 'daily 03:00'",
        )
    own: Mapping[str, Any] = spec.policy
    if placed.runs is not None:
        own = with_runs(placed.runs, own)
        options = {name: value for name, value in options.items() if name != RUN_ONCE}
    given = {**options, **own} if options or own else {}
    policy = _fitting(work, _policy(work, given), spec.kept)
    _check_probe(work, policy, spec.kept, follows=placed.follows)
    return ScheduleDraft(
        name=spec.name,
        timing=placed.text,
        zone=placed.zone,
        work=work_text(work),
        kind=work.kind,
        task=work.needs,
        policy=policy_text(policy),
        project=None if spec.project in (None, NO_PROJECT) else check_project(spec.project),
        owner=check_key(spec.owner, "owner", "give a name such as ada"),
        origin=spec.origin,
        enabled=spec.enabled,
        note=spec.note,
        anchor_at=now,
        next_at=placed.next_at,
        after_finish=placed.after_finish,
        follows=placed.follows,
        remaining=policy.remaining,
        fresh_at=None if policy.fresh is None else now + micros_of(policy.fresh),
        names_zone=spec.tz is not None or placed.zone != zone,
        may_switch_on=spec.enabled,
    )


def with_runs(runs: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """The policy that was given, with the number of runs that the timing says; InvalidInput if both say one."""
    asked = make_policy({name: given[name] for name in ("remaining", RUN_ONCE) if name in given}).remaining
    if asked not in (None, runs):
        raise InvalidInput(
            f"the timing says until {counted(runs, 'run')}, and the policy {counted(asked, 'run')}",
            field=RUN_ONCE if given.get(RUN_ONCE) else "remaining",
            hint="say it in one of the two",
        )
    return {**{name: value for name, value in given.items() if name != RUN_ONCE}, "remaining": runs}


def _policy(work: Work, options: Mapping[str, Any]) -> Policy:
    """The policy of a schedule with these options. Once means once: what is to run one time has no retry unasked."""
    policy = make_policy(_given(work, options))
    return replace(policy, retry=NO_RETRY) if policy.remaining == 1 and "retry" not in options else policy


def _given(work: Work, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The policy that was given, on top of what this kind of work comes with."""
    own = default_policy(work.kind)
    return {**own, **options} if own else options


def _check_probe(work: Work, policy: Policy, kept: Policy | None, *, follows: bool) -> None:
    """Refuse a probe that would never be tried."""
    if policy.probe is None or (kept and (kept.probe, kept.break_after) == (policy.probe, policy.break_after)):
        return
    if follows:
        raise InvalidInput(
            "a schedule that runs after others has no time of its own at which one run could be tried",
            field="probe",
            hint="leave out probe (none)",
        )
    # An agent that is not logged in breaks its schedule whatever the number.
    if policy.break_after is None and not isinstance(work, Agent):
        raise InvalidInput(
            f"probe {duration_text(policy.probe)} is for what failures have switched off, "
            "and without break_after they never do",
            field="probe",
            hint="give break_after too, such as 3, or leave out probe (none)",
        )


def _fitting(work: Work, policy: Policy, kept: Policy | None = None) -> Policy:
    """The policy, unless this work cannot have it."""
    if policy.silent is not None and isinstance(work, Http):
        raise InvalidInput(
            "http work says nothing until its answer is there, so silent cannot be watched",
            field="silent",
            hint="give a timeout instead, and silent none",
        )
    if policy.ping_url is not None and isinstance(work, CheckIn):
        raise InvalidInput(
            "a check-in calls nobody: its machine calls here", field="ping_url", hint="leave out ping_url"
        )
    if policy.soft_timeout is not None and isinstance(work, (Shell, Agent, Http, CheckIn)):
        raise InvalidInput(
            f"{work.kind} work cannot be asked to end early: soft_timeout is for functions",
            field="soft_timeout",
            hint="give a timeout, which lets it end before it is killed",
        )
    if policy.retry.judges and isinstance(work, (Shell, Agent, Http, CheckIn)):
        raise InvalidInput(
            f"{work.kind} work raises no exceptions that a retry could ask for",
            field="retry",
            hint="leave out retry.on and retry.never",
        )
    if kept is None or (kept.soft_timeout, kept.timeout) != (policy.soft_timeout, policy.timeout):
        check_soft_timeout(policy)
    return _in_turn(work, policy)


def _in_turn(work: Work, policy: Policy) -> Policy:
    """The policy, unless it sends a continued conversation into a session where another run could continue it too."""
    if policy.session is not None and work.conversation(None) is not None:
        raise InvalidInput(
            f"this {work.kind} work waits its turn in the session of its conversation",
            field="session",
            hint="leave out session, or begin a new conversation each time (context isolated)",
        )
    return policy


def check_name(name: Any) -> str:
    """A schedule's name; InvalidInput if it cannot be one."""
    if not isinstance(name, str) or not name.strip() or name != name.strip() or len(name) > 200:
        raise InvalidInput(
            f"a schedule cannot be called {name!r}",
            field="name",
            hint="give a name of 1 to 200 characters, without spaces before or after it",
        )
    if name in (".", ".."):
        raise InvalidInput(
            f"a schedule cannot be called {name!r}: in an address this means another place",
            field="name",
            hint="give a name such as nightly",
        )
    if not name.isprintable():
        raise InvalidInput(
            f"the name {name!r} has characters that cannot be printed", field="name", hint="give a name such as nightly"
        )
    return name


class Placed(NamedTuple):
    """A timing in its zone, as a draft stores it."""

    text: str
    zone: str
    next_at: Micros | None
    after_finish: Micros | None
    follows: bool
    runs: int | None
    """How many runs the timing asks for: the policy `remaining`, and no part of what is stored as timing."""


def place(timing: Timing | str, zone: str, now: Micros, name: str) -> Placed:
    """A timing or its text, checked, as of now, for a schedule of this name."""
    if isinstance(timing, Timing):
        check_reads_back(timing, zone)
    if isinstance(timing, (str, Timing)):
        return _placed(timing, zone, now) or _as_placed(_bound(timing, zone, now).named(name), zone, now)
    raise InvalidInput(
        f"a timing cannot be {timing!r}", field="timing", hint="give a Timing, or text such as 'every 5m'"
    )


@lru_cache(maxsize=4096)
def _placed(timing: Timing | str, zone: str, now: Micros) -> Placed | None:
    """From a Timing or its text; None if a name is needed. Of many that are added, many share a timing."""
    bound = _bound(timing, zone, now)
    return None if bound.wants_name else _as_placed(bound, zone, now)


def _bound(timing: Timing | str, zone: str, now: Micros) -> Timing:
    if isinstance(timing, str):
        return parse_timing(timing, tz=zone, now=from_micros(now))
    return timing.in_zone(zone)


def _as_placed(bound: Timing, zone: str, now: Micros) -> Placed:
    after_finish = None if bound.after_finish is None else micros_of(bound.after_finish)
    runs, bound = bound.runs, bound.unlimited
    text, due = bound.text_within(bound.zone), first_due(bound, now)
    return Placed(text, bound.zone or zone, due, after_finish, bool(bound.follows), runs)


def _timing_of(schedule: Timing | str | None, after: str | Sequence[str] | After | None) -> Timing | str | None:
    """The timing of a task, which is given in one of two ways."""
    if after is None:
        return schedule
    if schedule is not None:
        raise InvalidInput("give either schedule or after, not both", field="after")
    if isinstance(after, After):
        return after
    return After(*(after if isinstance(after, Sequence) and not isinstance(after, str) else [after]))


def task_schedule(
    task: str,
    schedule: Timing | str | None,
    after: str | Sequence[str] | After | None,
    enabled: bool,
    tz: Zone,
    policy: PolicyOptions,
    now: Micros,
) -> tuple[Timing | str, TaskSchedule] | None:
    """The timing of a task and its schedule, as code writes them, if it has one: nothing else would tell before the
    engine starts what is wrong."""
    try:
        schedule = _timing_of(schedule, after)
        if schedule is None:
            return None
        zone = check_zone(tz)
        placed = place(_without_dates(schedule, zone, now), zone, now, task)
        _check_probe(Function(task), make_policy(policy), None, follows=placed.follows)
    except TimingError as error:
        wrong = f"the schedule of task {task!r} cannot be: {error.message}"
        raise TimingError(wrong, text=error.text, position=error.position, hint=error.hint) from error
    except InvalidInput as error:
        raise InvalidInput(f"the schedule of task {task!r} cannot be: {error}", field="schedule") from error
    text = schedule if isinstance(schedule, str) else schedule.text
    return schedule, TaskSchedule(task, text, zone, enabled, stored=False)


def _without_dates(timing: Timing | str, zone: str, now: Micros) -> Timing | str:
    """A timing that can be placed where there is no ledger: as if no date were in its calendars."""
    found = parse_timing(timing, tz=zone, now=from_micros(now)) if isinstance(timing, str) else timing
    if not isinstance(found, Timing) or not found.wants_calendars:
        return timing
    return found.with_calendars(dict.fromkeys(found.wants_calendars, NO_DATES))


def first_due(timing: Timing, now: Micros) -> Micros | None:
    """The first due time of a schedule that is switched on now, which is where the grid of an `every` begins."""
    moment = from_micros(now)
    due = timing.anchored(moment).next_after(moment)
    return None if due is None else to_micros(due)


def resolve_work(work: WorkLike, code: Code) -> tuple[Work, Mapping[str, Any]]:
    """The work that is stored, and the policy that comes with its task, where the task is known."""
    if isinstance(work, str) and work:
        return _function(work), code.options_of(work)
    if isinstance(work, Function):
        return work, code.options_of(work.task)
    if isinstance(work, TaskLike):  # the dearest of these looks, so the last
        return Function(work.name), work.options
    if isinstance(work, Work):
        kind_of(work).check_complete(work)  # what no node could read back is not stored
        return work, {}
    raise InvalidInput(
        f"work cannot be {work!r}",
        field="work",
        hint="give a task or its name, Function('task', [args]), Shell('command'), Agent('prompt') or Http('GET', url)",
    )


async def stored_work(work: WorkLike, code: Code) -> WorkLike:
    """The work with its arguments as they are stored, if it is a call of a task; they must fit it."""
    if isinstance(work, Function):
        (stored,) = await code.stored_calls(work.task, [(work.args, work.kwargs)], from_json=True)
        return stored
    name = work if isinstance(work, str) else None if isinstance(work, Work) else getattr(work, "name", None)
    if isinstance(name, str):
        await code.stored_calls(name, [_NO_ARGUMENTS])
    return work


_NO_ARGUMENTS: GivenCall = ((), {})


@lru_cache(maxsize=1024)
def _function(task: str) -> Function:
    return Function(task)


def policy_for_enqueue(options: Mapping[str, Any], work: Work | None = None) -> Policy:
    """The policy of a run that was asked for directly: lane main, unless its task or its caller says another."""
    if isinstance(work, CheckIn):
        raise InvalidInput(
            "a check-in cannot be run: a machine checks in", field="work", hint="add a schedule with this work"
        )
    return (
        check_soft_timeout(make_policy(options, _ENQUEUED))
        if work is None
        else _fitting(work, make_policy(_given(work, options), _ENQUEUED))
    )


_ENQUEUED = make_policy({"lane": "main"}, DEFAULT)
