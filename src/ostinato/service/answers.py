"""What scripts may rely on: things as plain JSON, the same from every door.

The fields are those of the models, and the text under one is what OpenAPI says of it: here stands only what is told
otherwise. A model that is told whole is its own answer. Times are RFC 3339 in UTC, durations are text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Annotated, Any, Generic, Literal, Self, TypeVar, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ostinato.models import work
from ostinato.models.access import AuditEntry, Role, Token
from ostinato.models.blocking import BlockedBy
from ostinato.models.incident import Incident as IncidentModel
from ostinato.models.incident import RepeatedRun
from ostinato.models.installed_kinds import added_kinds
from ostinato.models.kind_parts import of_each_kind
from ostinato.models.lane import Lane as LaneModel
from ostinato.models.node import Node as NodeModel
from ostinato.models.notification import Delivery
from ostinato.models.output import OutputLine
from ostinato.models.policy import Policy, shown_policy
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.models.run import Run as RunModel
from ostinato.models.schedule import RecentRun
from ostinato.models.schedule import Schedule as ScheduleModel
from ostinato.models.work_kinds import WorkKind, line_of
from ostinato.service.incidents import IncidentDetail as IncidentDetailModel
from ostinato.service.schedules.keys import ScheduleKey
from ostinato.service.timings import Preview as PreviewModel
from ostinato.service.why import Why as WhyModel

__all__ = [
    "AgentWork",
    "Answer",
    "AuditPage",
    "CheckInWork",
    "Cleared",
    "DeliveryPage",
    "FunctionWork",
    "HttpWork",
    "IncidentDetail",
    "IncidentPage",
    "Lane",
    "Line",
    "Lines",
    "Listed",
    "MadeKey",
    "MadeLogin",
    "MadeToken",
    "Me",
    "NextTimes",
    "Node",
    "Page",
    "Preview",
    "QuarantinedRow",
    "Removed",
    "Run",
    "Schedule",
    "SchedulePage",
    "ShellWork",
    "UnreadableWork",
    "Why",
    "Work",
    "added_work",
    "answer_of",
    "camel",
    "incident_answer",
    "line_answer",
    "node_answer",
    "quarantined_answer",
    "run_answer",
    "schedule_answer",
    "why_answer",
]

T = TypeVar("T")
A = TypeVar("A", bound=Struct)
Zone = Annotated[str, Meta(description="An IANA name: the zone of its schedule, or of the server's settings.")]


class Answer(Struct):
    """Something that is told."""

    @classmethod
    def of(cls, model: object, **more: Any) -> Self:
        """The fields of a model that are told; `more` has those that it does not have, or has in another form."""
        told = {name: getattr(model, name) for name in cls.__struct_fields__ if name not in more}
        return cls(**told, **more)


def answer_of(model: type, *without: str) -> Callable[[type[A]], type[A]]:
    """A class of answers has the fields of this model but these; those that it has itself are told otherwise there."""

    def complete(kind: type[A]) -> type[A]:
        hints = get_type_hints(model, include_extras=True)
        told: dict[str, Any] = {
            one.name: (one.name, hints[one.name]) for one in fields(model) if one.name not in without
        }
        for one in msgspec.structs.fields(kind):
            told[one.name] = (one.name, one.type) if one.required else (one.name, one.type, one.default)
        config = kind.__struct_config__
        return msgspec.defstruct(  # type: ignore[return-value]  # it is what that class says, and more
            kind.__name__,
            sorted(told.values(), key=len),  # what may be left out comes last
            bases=kind.__bases__,
            module=kind.__module__,
            namespace={"__doc__": kind.__doc__, "__model__": model},
            tag=config.tag,
            tag_field=config.tag_field,
        )

    return complete


class Listed(Answer, Generic[T]):
    """The whole list, and the zone of its times."""

    items: list[T]
    zone: Zone


class Page(Answer, Generic[T]):
    """One page of a list; `next` is the cursor of the following page."""

    items: list[T]
    next: str | None


@answer_of(work.Function)
class FunctionWork(Answer, tag_field="kind", tag="function"):
    """Call a task."""


@answer_of(work.Shell)
class ShellWork(Answer, tag_field="kind", tag="shell"):
    """Run a command."""

    env: dict[str, str]
    memory: int | None
    """In bytes."""
    cpu: float | None
    """In seconds of processor time."""


@answer_of(work.Agent)
class AgentWork(Answer, tag_field="kind", tag="agent"):
    """Give a prompt to an AI agent."""

    context: str
    """isolated, group or session:NAME."""
    env: dict[str, str]


@answer_of(work.Http)
class HttpWork(Answer, tag_field="kind", tag="http"):
    """Send a request."""

    url: str
    headers: dict[str, str]
    json: Any
    body: str | None


@answer_of(work.CheckIn)
class CheckInWork(Answer, tag_field="kind", tag="check_in"):
    """A machine does the work and checks in."""


@answer_of(work.Unreadable, "kind", "needs")
class UnreadableWork(Answer, tag_field="kind", tag="unreadable"):
    """Stored work that this version cannot read."""

    text: str


Work = FunctionWork | ShellWork | AgentWork | HttpWork | CheckInWork | UnreadableWork


def _work(model: work.Work | work.Unreadable) -> Work:
    """Made anew for each answer: it may be changed."""
    added = added_work().get(model.kind)
    if added is not None:
        line = line_of(model)  # type: ignore[arg-type]  # it is no Unreadable
        return added.of(model, line=line)  # type: ignore[return-value]  # the type names those that are always there
    if model.kind in added_kinds():
        why = f"{model.kind} work cannot be shown here: the log says what is wrong with its package"
        return UnreadableWork.of(work.Unreadable("", why))
    if isinstance(model, work.Agent) and model.context is None:
        model = replace(model, context="isolated")
    found: Work = msgspec.convert(model, Work, from_attributes=True)
    return found


@cache
def added_work() -> dict[str, type[Answer]]:
    """The answers of the kinds of work that packages add: their fields, and the work on one line."""
    return of_each_kind(_added_answer, "answer", added_kinds())


def _added_answer(kind: WorkKind) -> type[Answer]:
    made: type[Answer] = msgspec.defstruct(  # type: ignore[assignment]  # its base is
        f"{camel(kind.name)}Work",
        [*((one.name, one.type) for one in kind.fields), ("line", str)],
        bases=(Answer,),
        tag_field="kind",
        tag=kind.name,
        namespace={"__doc__": kind.help},
    )
    msgspec.json.schema(made)  # raises where it could not be described
    return made


def camel(name: str) -> str:
    """`copy_file` as a class is called."""
    return "".join(part.capitalize() for part in name.split("_"))


@answer_of(RunModel, "waiting")
class Run(Answer):
    """One row of the ledger: one due time, or one request, and what became of it."""

    work: Work
    result: Any
    zone: str
    """The zone of its schedule, or of the settings."""
    cut: Sequence[Literal["work", "result", "error"]] | UnsetType = UNSET
    """Fields that were too long for a list and are cut."""
    blocked_by: BlockedBy | UnsetType | None = UNSET
    """What keeps it from starting or, where its node was lost, from going on, followed to its root; null if nothing
    does. Only where this run is asked for."""


def run_answer(run: RunModel, zone: str | None = None, *, blocked_by: BlockedBy | UnsetType | None = UNSET) -> Run:
    """A run; `zone` is told for one that has no schedule, `cut` for one that is not here as a whole."""
    return Run.of(run, work=_work(run.work), zone=run.zone or zone, cut=run.cut or UNSET, blocked_by=blocked_by)


@answer_of(ScheduleModel, "anchor_at", "made_by", "active", "declared", "overrides", "resolved_timing")
class Schedule(Answer):
    """A durable, named row: timing, work and policy."""

    state: Literal["on", "off", "paused", "broken", "orphaned", "finished"]
    late: bool
    """Whether it has not succeeded for longer than its `fresh` allows."""
    work: Work
    last_run: Run | None
    running: int | UnsetType
    """How many of its runs are queued or running."""
    queued: int | UnsetType
    """How many of these are queued: none of its work is running if that is all of them."""
    recent: Sequence[RecentRun] | UnsetType = UNSET
    """Its last runs, oldest first; only on request."""
    blocked_by: BlockedBy | UnsetType | None = UNSET
    """What keeps it from running, followed to its root; null if nothing does. Only where this schedule is asked for."""


def schedule_answer(
    schedule: ScheduleModel,
    running: int | None = None,
    queued: int | None = None,
    recent: Sequence[RecentRun] | None = None,
    *,
    blocked_by: BlockedBy | UnsetType | None = UNSET,
) -> Schedule:
    """A schedule; with how many of its runs are active and queued, and its last ones, where these are known."""
    return Schedule.of(
        schedule,
        work=_work(schedule.work),
        policy=_policy(schedule.policy),
        note=schedule.note or None,
        last_run=None if schedule.last_run is None else run_answer(schedule.last_run),
        running=UNSET if running is None else running,
        queued=UNSET if queued is None else queued,
        recent=UNSET if recent is None else recent,
        blocked_by=blocked_by,
    )


@lru_cache(maxsize=1024)
def _policy(policy: Policy) -> dict[str, Any]:
    """Most schedules of a list share a policy. Nobody may change it."""
    return shown_policy(policy)


class SchedulePage(Page[Schedule]):
    """One page of the list of schedules."""

    total: int
    """The length of the whole list."""


@answer_of(WhyModel)
class Why(Answer):
    """What became of a due time."""

    run: Run | None


def why_answer(why: WhyModel, zone: str | None = None) -> Why:
    """An answer, with the run that it rests on."""
    # Somebody may have given it in their own zone.
    at = None if why.at is None else why.at.astimezone(UTC)
    return Why.of(why, at=at, run=None if why.run is None else run_answer(why.run, zone))


@answer_of(PreviewModel, "after")
class Preview(Answer):
    """What a timing means."""


class NextTimes(Answer):
    """The next due times; `reason` says why there are none, or why it is paused."""

    zone: str
    next: Sequence[datetime]
    reason: str | None


class Line(Answer):
    """A line of output; a note about cut output has no number."""

    number: int | None
    at: datetime | None
    line: str


def line_answer(line: OutputLine) -> Line:
    """A line of a run's output."""
    return Line(line.number, line.at, line.text)


class Lines(Answer):
    """Lines after the requested one; if `ended` is true and `more` is false, these were the last."""

    lines: list[Line]
    more: bool
    ended: bool


@answer_of(LaneModel, "rate_from")
class Lane(Answer):
    """A named pool, and how full it is."""


@answer_of(NodeModel, "drain")
class Node(Answer):
    """A process whose engine is started."""

    state: Literal["alive", "draining", "lost"]
    services: dict[str, Any]
    draining: bool
    """It takes no new work, or was asked to take none."""


def node_answer(node: NodeModel) -> Node:
    """A node."""
    return Node.of(node, draining=node.drain or node.state == "draining")


@answer_of(IncidentModel)
class IncidentDetail(Answer):
    """An incident, what was told of it to whom, and the runs that it stands for."""

    deliveries: Sequence[Delivery]
    """The newest first."""
    runs: Sequence[int]
    """Those that would be run again, the newest first."""
    reruns: Sequence[RepeatedRun]
    """What was run again of them, and what became of it, the newest first."""


def incident_answer(detail: IncidentDetailModel) -> IncidentDetail:
    """An incident with all that is known of it."""
    return IncidentDetail.of(detail.incident, deliveries=detail.deliveries, runs=detail.runs, reruns=detail.reruns)


class IncidentPage(Page[IncidentModel]):
    """One page of the list of incidents: those that are open first, then the newest."""

    open: int
    """How many are open in all."""
    zone: Zone


class DeliveryPage(Page[Delivery]):
    """One page of what was sent, or is to be, newest first."""

    zone: Zone


class Cleared(Answer):
    """How many queued runs were ended."""

    cleared: int


class Removed(Answer):
    """A schedule that was removed while some of its work was running."""

    still_running: Sequence[int]
    """The runs whose work goes on; their rows are removed."""


class Me(Answer):
    """The user of this request."""

    who: str
    role: Role
    version: str
    """The version of the server."""
    zone: str
    """The zone of the server's settings."""
    db: str | None
    """What `--db` names this ledger on the server's machine; null for viewers, and where the URL has a password."""


class MadeLogin(Me):
    """The new login, with the second secret beside the cookie, which is shown only once."""

    origin_key: str
    """The page sends it with every request, as X-Origin-Key."""


@answer_of(Token)
class MadeToken(Answer):
    """A token with its secret, which is shown only once."""

    token: str
    zone: Zone


@answer_of(ScheduleKey)
class MadeKey(Answer):
    """A key of a schedule, which is shown only once."""


class AuditPage(Page[AuditEntry]):
    """One page of the log, newest first; `next` is the cursor of the following page."""

    zone: Zone


@answer_of(Quarantined, "id")
class QuarantinedRow(Answer):
    """A quarantined row; `at` and `content` are null while it still waits for that."""

    at: datetime | None
    content: str | None


def quarantined_answer(row: Quarantined | BadRow) -> QuarantinedRow:
    """A row that was set aside, or is about to be."""
    return QuarantinedRow.of(row) if isinstance(row, Quarantined) else QuarantinedRow.of(row, at=None, content=None)
