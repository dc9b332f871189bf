"""From what people give to what is stored: a checked ScheduleDraft. Pure: the time is passed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ostinato.clock import Micros, from_micros, micros_of, to_micros
from ostinato.errors import InvalidInput
from ostinato.models.ids import RunId
from ostinato.models.installed_kinds import kind_of
from ostinato.models.policy import DEFAULT, Policy, PolicyOptions, check_key, make_policy, policy_text
from ostinato.models.project import NO_PROJECT, check_project
from ostinato.models.schedule import ScheduleDraft
from ostinato.models.session_options import SessionOptions
from ostinato.models.task import TaskDescription
from ostinato.models.work import CheckIn, Function, Http, Work, default_policy, work_text
from ostinato.models.work_values import GivenCall
from ostinato.timing import Timing, parse_timing
from ostinato.timing.text import check_reads_back

__all__ = [
    "Code",
    "ScheduleSpec",
    "TaskLike",
    "WorkLike",
    "check_name",
    "first_due",
    "make_draft",
    "policy_for_enqueue",
    "resolve_work",
    "stored_work",
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
    tz: str | None = None
    enabled: bool = True
    note: str | None = None
    project: str | None = None
    owner: str = "user"
    origin: str | None = None
    policy: PolicyOptions = field(default_factory=PolicyOptions)

    def bound(self, zone: str) -> Timing:
        """Its timing in its zone; in this one, if it names none."""
        own = self.tz or zone
        return parse_timing(self.timing, tz=own) if isinstance(self.timing, str) else self.timing.in_zone(own)


def make_draft(spec: ScheduleSpec, zone: str, now: Micros, code: Code) -> ScheduleDraft:
    """Check everything and compute the first due time; wrong input is told by its field."""
    check_name(spec.name)
    placed = _place(spec.timing, spec.tz or zone, now)
    work, options = resolve_work(spec.work, code)
    policy = _fitting(work, make_policy(_given(work, {**options, **spec.policy} if options or spec.policy else {})))
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
        remaining=policy.remaining,
        fresh_at=None if policy.fresh is None else now + micros_of(policy.fresh),
        names_zone=spec.tz is not None or placed.zone != zone,
    )


def _given(work: Work, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The policy that was given, on top of what this kind of work comes with."""
    own = default_policy(work.kind)
    return {**own, **options} if own else options


def _fitting(work: Work, policy: Policy) -> Policy:
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
    if not name.isprintable():
        raise InvalidInput(
            f"the name {name!r} has characters that cannot be printed", field="name", hint="give a name such as nightly"
        )
    return name


class _Placed(NamedTuple):
    """A timing in its zone, as a draft stores it."""

    text: str
    zone: str
    next_at: Micros | None
    after_finish: Micros | None


def _place(timing: Timing | str, zone: str, now: Micros) -> _Placed:
    if isinstance(timing, Timing):
        check_reads_back(timing, zone)
    if isinstance(timing, (str, Timing)):
        return _placed(timing, zone, now)
    raise InvalidInput(
        f"a timing cannot be {timing!r}", field="timing", hint="give a Timing, or text such as 'every 5m'"
    )


@lru_cache(maxsize=4096)
def _placed(timing: Timing | str, zone: str, now: Micros) -> _Placed:
    """From a Timing or its text, as of now. Of many that are added, many share a timing."""
    bound = parse_timing(timing, tz=zone, now=from_micros(now)) if isinstance(timing, str) else timing.in_zone(zone)
    after_finish = None if bound.after_finish is None else micros_of(bound.after_finish)
    return _Placed(bound.text, bound.zone or zone, first_due(bound, now), after_finish)


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
        make_policy(options, _ENQUEUED)
        if work is None
        else _fitting(work, make_policy(_given(work, options), _ENQUEUED))
    )


_ENQUEUED = make_policy({"lane": "main"}, DEFAULT)
