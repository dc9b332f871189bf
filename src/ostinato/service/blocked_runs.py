"""What keeps a queued run from starting, followed to its root: pure, over facts that blocking.py has read.

Each step looks in the order in which a claim would. A step that ends at another run goes on with that one: what
delays it delays both. blocked_schedules.py beside it asks the same for a schedule.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ostinato.clock import Micros, from_micros, to_micros
from ostinato.command_hints import command
from ostinato.models.blocking import Action, BlockedBy, BlockedCause, Link, Verb
from ostinato.models.budget import Spending
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import RunId
from ostinato.models.lane import Bucket, Lane, parse_rate
from ostinato.models.node import Node
from ostinato.models.run import Run
from ostinato.models.session import SHARED_TURN
from ostinato.models.states import Cause, RunState
from ostinato.models.work import CheckIn
from ostinato.models.work_kinds import is_task, unserved
from ostinato.stores.base import FirstActive
from ostinato.timing.zones import local_text

__all__ = [
    "Facts",
    "blocked_run",
    "cancelling",
    "link_to",
    "of_given_up",
    "of_lane_switch",
    "of_nodes",
    "of_run_under_way",
    "own_line",
]

_PUT_OFF = {Cause.BUDGET: BlockedCause.BUDGET} | dict.fromkeys((None, Cause.SNOOZED), BlockedCause.DELAYED)
"""Why a run is not ready yet, by the cause that its row has; for every other it is tried again."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds now: read once for however many runs and schedules."""

    now: Micros
    zone: str
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    nodes: Sequence[Node] = ()
    given_up: Sequence[GivenUp] = ()
    first: FirstActive = field(default_factory=FirstActive)
    app: str | None = None
    """What `--app` names the code of this process; empty where it needs no name, and None if it has none."""
    is_known_here: Callable[[str], bool] = lambda _: False
    """Whether that code has a task."""
    spending: Spending = field(default_factory=Spending)
    """What a schedule that is paused has used of its day."""

    @property
    def running_nodes(self) -> list[Node]:
        return [node for node in self.nodes if node.state != "lost"]

    def worker(self, needs: str | None) -> str:
        """What starts another engine for this task. No page with it: there may be one, and its port is taken then."""
        app = self.app
        if is_task(needs) and (app is None or not self.is_known_here(str(needs))):
            app = "MODULE:APP"
        return command("worker", rest=f"--app {shlex.quote(app)}" if app else "")

    def at(self, moment: datetime) -> str:
        """A time, for a sentence."""
        return local_text(self.zone, moment)


@dataclass(frozen=True, slots=True)
class Step:
    """What keeps one run from going on, and the run that has to go on first, if there is one."""

    blocked: BlockedBy
    then: Run | None = None


def blocked_run(run: Run, facts: Facts) -> BlockedBy | None:
    """The root of what keeps this queued run from starting; None if it is about to start."""
    links: tuple[Link, ...] = ()
    root: BlockedBy | None = None
    seen: set[int] = set()
    toward = _toward_root(run, facts)
    at: Run | None = run
    while at is not None and at.id not in seen:  # each once: what waits for itself has no end
        seen.add(at.id)
        before = toward.get(at.id)
        step = _of_one(at, facts) if before is None else _of_upstream(at, before, facts)
        if step is None:
            break
        links += step.blocked.chain
        root, at = replace(_ending(step.blocked, root, at), chain=links), step.then
    return root


def _toward_root(run: Run, facts: Facts) -> dict[RunId, Run]:
    """For a step of a chain, and those that it waits for, the one to go on with: toward the first that something keeps
    from going on; if there is none, just the first."""
    first = {id: before[0] for id, before in facts.first.after.items()}
    waits: dict[RunId, Run] = {run.id: run}
    left = [run]
    while left:
        at = left.pop()
        before = [one for one in facts.first.after.get(at.id, ()) if one.id not in waits]
        waits |= {one.id: at for one in before}
        left += reversed(before)
        if at.id not in first and _of_one(at, facts) is not None:
            while at.id != run.id:
                first[waits[at.id].id] = at
                at = waits[at.id]
            break
    return first


def _of_one(run: Run, facts: Facts) -> Step | None:
    return _of_queued(run, facts) if run.state is RunState.QUEUED else of_run_under_way(run, facts)


def _ending(blocked: BlockedBy, before: BlockedBy | None, run: Run) -> BlockedBy:
    """What this run waits for; where nothing else ends that, what would have ended the run does."""
    if blocked.command is None and before is not None and before.action == cancelling(run, before).action:
        return cancelling(run, blocked)
    return blocked


def _of_queued(run: Run, facts: Facts) -> Step | None:
    if run.waiting and run.session is None and not isinstance(run.work, CheckIn):
        ended = f"run {run.id} is about to be released: what it waited for has ended"
        return Step(BlockedBy(BlockedCause.UPSTREAM, ended))
    if to_micros(run.ready_at) > facts.now:
        return Step(_not_ready(run, facts))
    if isinstance(run.work, CheckIn):
        late = f"run {run.id} waits for its machine to check in, and is late {run.work.late_after} after its due time"
        return Step(BlockedBy(BlockedCause.CHECK_IN, late, since=run.due_at))
    if run.waiting:
        return _of_turn(run, facts)
    if run.node is not None:
        return None  # the process that is to execute it is about to start it
    if (blocked := of_given_up(run.schedule, facts) or of_nodes(run.task, facts)) is not None:
        return Step(blocked)
    return _of_lane(facts.lanes.get(run.lane), facts) or _of_slots(run, facts)


def of_run_under_way(run: Run, facts: Facts) -> Step | None:
    """What keeps a running run from ending, as far as it is not its own work."""
    node = next((node for node in facts.nodes if node.id == run.node and node.state == "lost"), None)
    if node is None:
        return None
    running = bool(facts.running_nodes)
    who = "another node takes it over in a moment" if running else "no other engine is running to take it over"
    sentence = f"run {run.id} was on node {node.id}, which is lost since {facts.at(node.seen_at)}: {who}"
    ends = None if running else facts.worker(run.task)
    return Step(BlockedBy(BlockedCause.NODE_LOST, sentence, node.seen_at, command=ends, chain=(Link("node", node.id),)))


def _of_upstream(run: Run, before: Run, facts: Facts) -> Step:
    """It is a step of a chain that comes after another."""
    name, state = before.task or before.work.kind, "which is queued"
    if before.started_at is not None:
        state = f"which is running since {facts.at(before.started_at)}"
    sentence = f"run {run.id} waits for run {before.id} of {name!r}, {state}"
    waits = BlockedBy(BlockedCause.UPSTREAM, sentence, before.started_at, chain=(link_to(before),))
    return Step(waits, before)


def _not_ready(run: Run, facts: Facts) -> BlockedBy:
    cause = _PUT_OFF.get(run.cause, BlockedCause.RETRY)
    # Of one that is simply put off, the reason is this very sentence, if it has any.
    why = f": {run.reason}" if run.reason and run.cause is not None else ""
    sentence = f"run {run.id} is not ready before {facts.at(run.ready_at)}{why}"
    return BlockedBy(cause, sentence, until=run.ready_at)


def _of_turn(run: Run, facts: Facts) -> Step:
    """It waits in a session, in the line of its schedule, or in the one of what shares a turn."""
    before = facts.first.sessions.get(run.session or "")
    if before is None:
        sentence = f"run {run.id} is about to have its turn"
        return Step(BlockedBy(BlockedCause.SESSION_BUSY, sentence))
    state = _state_of(before, facts)
    if own_line(run):
        cause = BlockedCause.RUN_ACTIVE
        sentence = f"{state}, and the runs of schedule {run.schedule!r} go one after the other"
    elif run.session is not None and run.session.startswith(SHARED_TURN):
        outer = run.session.removeprefix(SHARED_TURN)
        cause = BlockedCause.RUN_ACTIVE
        sentence = f"{state}, and what shares the turn of run {outer} goes one after the other"
    else:
        cause = BlockedCause.SESSION_BUSY
        sentence = f"session {run.session!r} is busy: {state}"
    links = (Link("session", run.session or ""),) if cause is BlockedCause.SESSION_BUSY else ()
    busy = BlockedBy(cause, sentence, before.started_at, chain=(*links, link_to(before)))
    return Step(cancelling(before, busy), before)


def own_line(run: Run) -> bool:
    """Whether its session is the line of its schedule, which is none that people see."""
    return run.session == f"schedule:{run.schedule}"


def _state_of(run: Run, facts: Facts) -> str:
    of = f" of {run.schedule!r}" if run.schedule is not None else ""
    if run.state is RunState.RUNNING and run.started_at is not None:
        return f"run {run.id}{of} is running since {facts.at(run.started_at)}"
    return f"run {run.id}{of} is queued before it"


def of_given_up(schedule: str | None, facts: Facts) -> BlockedBy | None:
    """Whose code occupies the name of its schedule."""
    found = next((one for one in facts.given_up if schedule is not None and one.schedule == schedule), None)
    if found is None:
        return None
    sentence = f"{found.sentence}: what comes next starts when that has ended; a restart of the node ends it"
    chain = (Link("run", str(found.run)), Link("node", found.node))
    return BlockedBy(BlockedCause.GIVEN_UP, sentence, found.at, chain=chain)


def of_nodes(needs: str | None, facts: Facts) -> BlockedBy | None:
    """Why no node would take it, however much room there were."""
    running = facts.running_nodes
    if not running:
        lost = max(facts.nodes, key=lambda node: node.seen_at, default=None)
        said = "" if lost is None else f": node {lost.id} is lost since {facts.at(lost.seen_at)}"
        since = None if lost is None else lost.seen_at
        return BlockedBy(BlockedCause.NO_ENGINE, f"no engine is running{said}", since, command=facts.worker(needs))
    knowing = [node for node in running if _knows(node, needs)]
    if not knowing:
        worker = facts.worker(needs) if is_task(needs) else None
        return BlockedBy(BlockedCause.UNKNOWN_TASK, unserved(str(needs)), command=worker)
    if not all(map(_is_draining, knowing)):
        return None
    which = "every running node" if len(knowing) == len(running) else f"every running node that knows task {needs!r}"
    asked = next((node.id for node in knowing if node.drain), None)
    if asked is None:
        return BlockedBy(BlockedCause.SHUTTING_DOWN, f"{which} is shutting down", command=facts.worker(needs))
    return BlockedBy(
        BlockedCause.DRAINING,
        f"{which} is draining: it was asked to take no more work",
        command=command("node resume", asked),
        action=Action(Verb.RESUME_NODE, asked, f"Resume node {asked}"),
        chain=(Link("node", asked),),
    )


def of_lane_switch(lane: Lane | None, facts: Facts) -> BlockedBy | None:
    """Whether somebody paused the lane."""
    if lane is None or not lane.paused:
        return None
    by = "" if lane.paused_by is None else f" by {lane.paused_by}"
    since = "" if lane.paused_at is None else f" since {facts.at(lane.paused_at)}"
    note = f" ({lane.note})" if lane.note else ""
    return BlockedBy(
        BlockedCause.LANE_PAUSED,
        f"lane {lane.name!r} is paused{by}{since}{note}",
        lane.paused_at,
        command=command("lane resume", lane.name),
        action=Action(Verb.RESUME_LANE, lane.name, f"Resume lane {lane.name}"),
        chain=(Link("lane", lane.name),),
    )


def _of_lane(lane: Lane | None, facts: Facts) -> Step | None:
    """Why nothing starts in its lane."""
    if lane is None:
        return None
    if (paused := of_lane_switch(lane, facts)) is not None:
        return Step(paused)
    link = Link("lane", lane.name)
    if lane.used >= lane.limit:
        oldest = facts.first.lanes.get(lane.name)
        more = lane.used + 1
        full = BlockedBy(
            BlockedCause.LANE_FULL,
            f"lane {lane.name!r} is full: {lane.used} of {lane.limit} under way{_longest(oldest, facts)}",
            None if oldest is None else oldest.started_at,
            command=command("lane set", lane.name, str(more)),
            action=Action(Verb.SET_LANE, lane.name, f"Allow {more} in lane {lane.name}", {"limit": more}),
        )
        return Step(full.behind(link, *_links_to(oldest)), oldest)
    if lane.rate is None:
        return None
    bucket = Bucket(parse_rate(lane.rate), lane.rate_from).at(facts.now)
    if bucket.holds(facts.now):
        return None
    next_at = from_micros(bucket.next_at(facts.now))
    return Step(
        BlockedBy(
            BlockedCause.LANE_RATE,
            f"lane {lane.name!r} starts no more than {lane.rate}, which is used up: "
            f"the next one starts at {facts.at(next_at)}",
            until=next_at,
            command=command("lane set", lane.name, rest="--rate none"),
            action=Action(Verb.SET_LANE, lane.name, f"Lift the rate of lane {lane.name}", {"rate": "none"}),
            chain=(link,),
        )
    )


def _of_slots(run: Run, facts: Facts) -> Step | None:
    """Why no node has room for it."""
    able = [node for node in facts.running_nodes if _knows(node, run.task) and not _is_draining(node)]
    if any(node.running < node.slots for node in able):
        return None
    if len(able) == 1:
        sentence = f"the slots of node {able[0].id} are full: {able[0].running} of {able[0].slots} under way"
    else:
        used, slots = sum(node.running for node in able), sum(node.slots for node in able)
        sentence = f"the slots of all {len(able)} nodes that could take it are full: {used} of {slots} under way"
    held = [facts.first.nodes[node.id] for node in able if node.id in facts.first.nodes]
    oldest = min(held, key=lambda one: one.started_at or one.ready_at, default=None)
    full = BlockedBy(
        BlockedCause.NODE_FULL,
        sentence + _longest(oldest, facts),
        None if oldest is None else oldest.started_at,
        command=facts.worker(run.task),
    )
    return Step(full.behind(*(Link("node", node.id) for node in able), *_links_to(oldest)), oldest)


def _longest(run: Run | None, facts: Facts) -> str:
    if run is None or run.started_at is None:
        return ""
    of = f" of {run.schedule!r}" if run.schedule is not None else ""
    return f", the longest of them run {run.id}{of} since {facts.at(run.started_at)}"


def link_to(run: Run) -> Link:
    """A step to this run."""
    return Link("run", str(run.id))


def _links_to(run: Run | None) -> tuple[Link, ...]:
    return () if run is None else (link_to(run),)


def cancelling(run: Run, blocked: BlockedBy) -> BlockedBy:
    """The same, with what ends this run."""
    id = str(run.id)
    return replace(blocked, command=command("run cancel", id), action=Action(Verb.CANCEL_RUN, id, f"Cancel run {id}"))


def _knows(node: Node, needs: str | None) -> bool:
    return needs is None or needs in node.tasks


def _is_draining(node: Node) -> bool:
    return node.drain or node.state == "draining"
