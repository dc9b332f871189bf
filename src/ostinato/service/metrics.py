"""The metrics as Prometheus' text: every node as its last beat counted, the engine of this process as it is now.

`/metrics` of the server, of a worker and `app.metrics()` give the same text; `engine/statistics.py` counts.
docs/reference/metrics.md says what each means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ostinato.models.ids import NodeId
from ostinato.models.incident import FAILINGS
from ostinato.models.lane import Lane
from ostinato.models.node import Node
from ostinato.models.notification import SELECTABLE, NotificationCounts
from ostinato.models.states import RunState
from ostinato.models.work_kinds import is_task
from ostinato.service.services import Services

__all__ = ["METRICS_CONTENT_TYPE", "ConnectionCounts", "Family", "collect_metrics", "metrics_text"]

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""What a web app answers `app.metrics()` as."""
_STATUSES = {"success": RunState.SUCCEEDED, "failure": RunState.FAILED}
"""The words that dashboards of tasks expect, and the states that they stand for."""


class ConnectionCounts(Protocol):
    """What the server counts of its connections."""

    @property
    def refused(self) -> int:
        """How many were turned away, or gave way to others."""
        ...

    def __len__(self) -> int:
        """How many are open."""
        ...


class Family:
    """One metric with its samples, as the text format wants them: together, and described before."""

    def __init__(self, name: str, kind: str, help: str) -> None:
        self.name = name
        self._lines = [f"# HELP {name} {_escaped(help, quotes=False)}", f"# TYPE {name} {kind}"]
        self._described = len(self._lines)

    def add(self, value: float, /, suffix: str = "", **labels: str) -> None:
        """One sample."""
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        self._lines.append(f"{self.name}{suffix}" + (f"{{{pairs}}}" if pairs else "") + f" {_number(value)}")

    def add_histogram(self, bounds: Sequence[float], counted: Mapping[str, Any], **labels: str) -> None:
        """The samples of a histogram, from its buckets each for itself."""
        below = 0
        counts = list(counted.get("counts", ()))
        for bound, count in zip(bounds, [*counts, *[0] * len(bounds)], strict=False):
            below += count
            self.add(below, "_bucket", **labels, le=_number(bound))
        self.add(sum(counts), "_bucket", **labels, le="+Inf")
        self.add(counted.get("sum", 0), "_sum", **labels)
        self.add(sum(counts), "_count", **labels)

    def lines(self) -> Iterator[str]:
        """Its text; nothing, if it has no sample."""
        if len(self._lines) > self._described:
            yield from self._lines


async def collect_metrics(
    services: Services,
    own: Mapping[NodeId, Mapping[str, Any]],
    connections: ConnectionCounts | None = None,
) -> str:
    """The whole answer for one database. `own` is what an engine of this process has counted since its last beat."""
    nodes = await services.nodes.list()
    counted = {**await services.nodes.statistics(), **own}
    statistics = {str(node.id): counted.get(node.id, {}) for node in nodes if node.state != "lost"}
    schedules = {str(state): count for state, count in (await services.schedules.count()).items()}
    told = await services.overview.notification_counts()
    return metrics_text(nodes, statistics, await services.lanes.list(), schedules, connections, told)


def metrics_text(
    nodes: Iterable[Node],
    statistics: Mapping[str, Mapping[str, Any]],
    lanes: Iterable[Lane],
    schedules: Mapping[str, int],
    connections: ConnectionCounts | None = None,
    told: NotificationCounts | None = None,
) -> str:
    """The same, of what was collected."""
    nodes = list(nodes)
    families = [*_of_work(nodes, statistics), *_of_lanes(lanes), *_of_nodes(nodes), *_of_schedules(schedules)]
    families += _of_notifications(statistics, told)
    if connections is not None:
        families += _of_connections(connections)
    return "".join(f"{line}\n" for family in families for line in family.lines())


def _of_work(nodes: Iterable[Node], statistics: Mapping[str, Mapping[str, Any]]) -> Iterator[Family]:
    skipped = Family("scheduler_task_skipped_total", "counter", "Due times for which nothing was executed, by cause.")
    durations = Family("scheduler_task_duration_seconds", "histogram", "How long the last attempt of a run took.")
    lateness = Family(
        "scheduler_start_lateness_seconds", "histogram", "The time from when a run was ready until it started."
    )
    batches = Family("scheduler_commit_batch_size", "histogram", "How many runs one transaction finished.")
    for node, counted in statistics.items():
        bounds = counted.get("bounds", {})
        for task, causes in counted.get("skipped", {}).items():
            for cause, count in causes.items():
                skipped.add(count, task=task, cause=cause, node=node)
        for task, histogram in counted.get("durations", {}).items():
            durations.add_histogram(bounds.get("durations", ()), histogram, task=task, node=node)
        for family, name in ((lateness, "lateness"), (batches, "batches")):
            if name in counted:
                family.add_histogram(bounds.get(name, ()), counted[name], node=node)
    yield from (*_of_runs(nodes, statistics), skipped, durations, lateness, batches)


def _of_runs(nodes: Iterable[Node], statistics: Mapping[str, Mapping[str, Any]]) -> Iterator[Family]:
    """How runs ended, in two families: in each of them every run counts once, so a sum over one is right."""
    runs = Family("scheduler_task_runs_total", "counter", "Runs that were executed to their end: success or failure.")
    ended = Family("scheduler_runs_ended_total", "counter", "Runs that ended, also without execution, by their state.")
    with_errors = Family("scheduler_task_runs_with_errors_total", "counter", "Runs that succeeded and counted errors.")
    known = {str(node.id): filter(is_task, node.tasks) for node in nodes if node.state != "lost"}
    for node in dict.fromkeys((*known, *statistics)):
        counted = statistics.get(node, {})
        ends: Mapping[str, Mapping[str, int]] = counted.get("runs", {})
        # Zero too: the increase from nothing to the first failure would be invisible.
        for task in sorted({*known.get(node, ()), *ends}):
            for status, executed in _STATUSES.items():
                runs.add(ends.get(task, {}).get(executed, 0), task=task, status=status, node=node)
        for task, states in ends.items():
            for state, count in states.items():
                ended.add(count, task=task, state=state, node=node)
        for task, count in counted.get("with_errors", {}).items():
            with_errors.add(count, task=task, node=node)
    yield from (runs, ended, with_errors)


def _of_lanes(lanes: Iterable[Lane]) -> Iterator[Family]:
    depth = Family("scheduler_queue_depth", "gauge", "Runs that are queued in a lane.")
    used = Family("scheduler_lane_used", "gauge", "Runs that are under way in a lane, on all nodes.")
    limit = Family("scheduler_lane_limit", "gauge", "How many runs may be under way in a lane, on all nodes.")
    paused = Family("scheduler_lane_paused", "gauge", "1 while the lane is paused.")
    for lane in lanes:
        depth.add(lane.queued, lane=lane.name)
        used.add(lane.used, lane=lane.name)
        limit.add(lane.limit, lane=lane.name)
        paused.add(int(lane.paused), lane=lane.name)
    yield from (depth, used, limit, paused)


def _of_nodes(nodes: Iterable[Node]) -> Iterator[Family]:
    states = {"alive": 0, "draining": 0, "lost": 0}
    up = Family("scheduler_engine_service_up", "gauge", "1 while an engine service of the node is up.")
    restarts = Family(
        "scheduler_engine_service_restarts_total", "counter", "How often an engine service died and was restarted."
    )
    for node in nodes:
        states[node.state] = states.get(node.state, 0) + 1
        for service, health in node.services.items() if node.state != "lost" else ():
            up.add(int(bool(health.get("up"))), node=node.id, service=service)
            restarts.add(health.get("restarts", 0), node=node.id, service=service)
    by_state = Family("scheduler_nodes", "gauge", "Processes whose engine is started, or was lost recently.")
    for state, count in states.items():
        by_state.add(count, state=state)
    yield from (by_state, up, restarts)


def _of_schedules(schedules: Mapping[str, int]) -> Iterator[Family]:
    by_state = Family("scheduler_schedules", "gauge", "Schedules, each in one state.")
    paused = Family(
        "scheduler_schedules_paused", "gauge", "Schedules that are on, but paused until their next due time."
    )
    for state, count in schedules.items():
        if state == "paused":
            paused.add(count)
        else:
            by_state.add(count, state=state)
    yield from (by_state, paused)


def _of_notifications(statistics: Mapping[str, Mapping[str, Any]], told: NotificationCounts | None) -> Iterator[Family]:
    ended = Family(
        "scheduler_deliveries_total",
        "counter",
        "Messages to channels that were sent, will be tried again (retried), failed for good, or were dropped.",
    )
    waiting = Family("scheduler_deliveries_waiting", "gauge", "Messages to channels that are pending or being sent.")
    incidents = Family("scheduler_incidents_open", "gauge", "Incidents that are open, by what opened them.")
    for node, counted in statistics.items():
        for channel, outcomes in counted.get("told", {}).items():
            for outcome, count in outcomes.items():
                ended.add(count, channel=channel, outcome=outcome, node=node)
    if told is not None:
        for (channel, state), count in sorted(told.deliveries.items()):
            waiting.add(count, channel=channel, state=state)
        for kind in SELECTABLE:
            if kind in FAILINGS:
                incidents.add(told.incidents.get(kind, 0), kind=kind)
    yield from (ended, waiting, incidents)


def _of_connections(connections: ConnectionCounts) -> Iterator[Family]:
    open_now = Family("scheduler_http_connections", "gauge", "Open connections of this server.")
    refused = Family(
        "scheduler_http_connections_refused_total",
        "counter",
        "Connections that were refused, or closed to make room for others.",
    )
    open_now.add(len(connections))
    refused.add(connections.refused)
    yield from (open_now, refused)


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
